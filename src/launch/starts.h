// Starts the programs of a job by fork (docs/starts.md). maya-start finds or creates template
// processes in a directory, and forks programs from them. The directory belongs to one process, a
// run or a search, and the template processes end with it.
#pragma once

#include <string>

#include "launch/environment.h"
#include "launch/executable.h"
#include "launch/installation.h"
#include "launch/supervise.h"
#include "maya/result.h"

namespace maya::launch {

class Starts {
 public:
  // Starts all programs with exec.
  Starts() = default;
  // Uses the directory in the environment, which belongs to the search that this run is a trial of.
  static Starts of_search(const Environment& user);
  // Creates a directory of its own, which is removed at the end.
  static Result<Starts> create();

  Starts(Starts&& other) noexcept;
  Starts& operator=(Starts&& other) noexcept;
  ~Starts();

  // The program that stands in the place of Python's.
  static std::string starter(const Installation& installation);

  bool by_fork() const { return !directory_.empty(); }
  void set_environment(Environment& environment) const;
  // Changes the command so that it is forked, if Python runs it.
  void prepare(Process& process, const Executable& executable,
               const Installation& installation) const;

 private:
  std::string directory_;
  bool owned_{};
};

}  // namespace maya::launch
