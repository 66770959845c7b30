// The directory of one run: unique, held by one launcher at a time.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::launch {

class RunDirectory {
 public:
  // `wanted` empty: maya-runs/<time>-<name>, made unique. Otherwise that directory; a finished run
  // in it is replaced, one in progress and foreign files are not touched.
  static Result<RunDirectory> create(const std::string& wanted, const std::string& name);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::string& path() const { return path_; }    // absolute
  const std::string& shown() const { return shown_; }  // as a user would type it
  bool replaced() const { return replaced_; }

 private:
  RunDirectory() = default;
  std::string path_, shown_;
  int lock_{-1};
  bool replaced_{};
};

// A process is recorded under its number until it learns its rank or ends. One that was killed
// before that was alone: its recording becomes rank 0's. To be called when the command has ended.
void name_orphans(const std::string& directory);

// Whole file, atomically: a reader sees the old or the new text. Says so when the disk is full.
Status write_file(const std::string& path, const std::string& text);

}  // namespace maya::launch
