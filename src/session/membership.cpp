#include "session/membership.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "session/notes.h"

namespace maya::session {
namespace {

// The same number as launch::first_lock_descriptor: high enough for shells and scripts that use
// descriptors by number, low enough for the usual limit of 1024.
constexpr int lock_descriptor = 900;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The launcher's descriptor is inherited by all its children, but many programs close what they did
// not open (Python's subprocess does). Each process therefore makes sure that it holds the lock. It
// stays open across exec: a program that keeps it has no moment without the lock.
void hold_run_directory() {
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (run == nullptr || *run == '\0') return;
  const std::string path = std::string(run) + "/.lock";
  struct stat lock {
  }, held{};
  if (stat(path.c_str(), &lock) != 0) return;
  if (fstat(lock_descriptor, &held) == 0 && same_file(lock, held)) return;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  if (const int high = fcntl(file, F_DUPFD, lock_descriptor); high >= 0) {
    close(file);
    file = high;
  }
  flock(file, LOCK_SH | LOCK_NB);
}

__attribute__((constructor)) void join_at_start() { hold_run_directory(); }

}  // namespace

void join_run() { hold_run_directory(); }

void leave_run() {
  // Not by getenv: what a template reads with it must be the same for its programs (session/start).
  const char* run = secure_getenv("MAYA_RUN_DIR");
  struct stat lock {
  }, held{};
  if (run == nullptr || stat((std::string(run) + "/.lock").c_str(), &lock) != 0) return;
  constexpr int most = 1024;  // the descriptors that may be it
  for (int file = lock_descriptor; file < most; ++file)
    if (fstat(file, &held) == 0 && same_file(lock, held)) close(file);
}

void list_in_manifest(std::string_view name) { append_to_run(".manifest", name, false); }

}  // namespace maya::session
