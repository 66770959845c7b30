// Programs of a job started by fork (docs/starts.md): a directory in which maya-start finds, and
// makes, the processes that fork into them. It belongs to one process, a run or a search, and those
// processes end with it.
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
  // All programs plainly.
  Starts() = default;
  // In the directory that the environment names: of the search this run is a trial of.
  static Starts of_search(const Environment& user);
  // In a directory of its own, removed at the end.
  static Result<Starts> create();

  Starts(Starts&& other) noexcept;
  Starts& operator=(Starts&& other) noexcept;
  ~Starts();

  // The program that stands in the place of Python's.
  static std::string starter(const Installation& installation);

  bool by_fork() const { return !directory_.empty(); }
  void set_environment(Environment& environment) const;
  // The command itself, where Python runs it.
  void prepare(Process& process, const Executable& executable,
               const Installation& installation) const;

 private:
  std::string directory_;
  bool owned_{};
};

}  // namespace maya::launch
