// The directory of one run. It is unique and used by one launcher at a time.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::launch {

// The file descriptor of the lock in the processes of a run, above the numbers that shells use.
inline constexpr int first_lock_descriptor = 900;

class RunDirectory {
 public:
  // If `wanted` is empty, creates maya-runs/<time>-<name> with a unique name. Otherwise uses the
  // directory `wanted` and removes the files that a finished run has listed in its manifest. Fails
  // if a run is in progress there, or if the directory is not empty and was not made by a run. A
  // new directory is private to the user (0700).
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

// A recording is named after the process id until the process knows its rank or ends. A process
// that was killed before that was the only one, so its recording becomes that of rank 0. To be
// called when the command has ended.
void name_orphans(const std::string& directory);

// Adds a file of the run to the manifest: the next run in the directory may remove it.
void list_in_manifest(const std::string& directory, const std::string& name);

// Writes a file atomically: a reader sees the old or the new text.
Status write_file(const std::string& path, const std::string& text);

}  // namespace maya::launch
