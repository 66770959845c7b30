// The directory of one run: unique, held by one launcher at a time.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::launch {

// Where processes of a run hold its lock, out of the way of the numbers that shells use.
inline constexpr int first_lock_descriptor = 900;

class RunDirectory {
 public:
  // `wanted` empty: maya-runs/<time>-<name>, made unique. Otherwise that directory; what a finished
  // run has listed in its manifest is removed. A run in progress and other people's files are not
  // touched, and a directory that was not made by a run is refused unless it is empty. A directory
  // made here is private to the user (0700).
  static Result<RunDirectory> create(const std::string& wanted, const std::string& name);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::string& path() const { return path_; }    // absolute
  const std::string& shown() const { return shown_; }  // as a user would type it
  bool replaced() const { return replaced_; }

 private:
  RunDirectory() = default;
  Status lock(const std::string& shown);
  Status check_owner() const;
  Status clear();
  std::string path_, shown_;
  int lock_{-1};
  bool replaced_{};
};

// A process is recorded under its number until it learns its rank or ends. One that was killed
// before that was alone: its recording becomes rank 0's. To be called when the command has ended.
void name_orphans(const std::string& directory);

// The run wrote this file: the next run into the directory may remove it.
void list_in_manifest(const std::string& directory, const std::string& name);

// Whole file, atomically: a reader sees the old or the new text. Says so when the disk is full.
Status write_file(const std::string& path, const std::string& text);

}  // namespace maya::launch
