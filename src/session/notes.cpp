#include "session/notes.h"

#include "session/machine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "session/settings.h"
#include "session/state.h"

namespace maya::session {
namespace {

// As it was when the process started: a program may empty its environment.
char directory[4000];
const bool directory_read = [] {
  read_notes_directory();
  return true;
}();

}  // namespace

void append_to_run(const char* name, std::string_view line, bool create) {
  if (!directory_read || *directory == '\0') return;
  char path[sizeof directory + 64];
  int length = std::snprintf(path, sizeof path, "%s/%s", directory, name);
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) return;
  int file =
      open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
  if (file < 0) return;
  char end = '\n';
  iovec parts[] = {{const_cast<char*>(line.data()), line.size()}, {&end, 1}};
  [[maybe_unused]] ssize_t ignored = writev(file, parts, 2);
  close(file);
}

void note(std::string_view line) { append_to_run("notes.txt", line); }

void read_notes_directory() {
  const char* given = std::getenv("MAYA_RUN_DIR");
  if (given != nullptr && std::strlen(given) < sizeof directory) std::strcpy(directory, given);
}

void note_unreached(std::string_view line) { append_to_run("unreached.txt", line); }

void uses_runtime(int major, const void* code) {
  static std::mutex mutex;
  std::lock_guard guard(mutex);
  static int first_major = 0;
  static const void* first = nullptr;
  static bool told = false;
  if (first_major == 0) first_major = major, first = code;
  if (major == first_major || told) return;
  told = true;
  auto library = [](const void* address) {
    Dl_info info{};
    return std::string(dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname
                                                                                : "the program");
  };
  note("one process uses two CUDA majors: " + library(first) + " is built for CUDA " +
       std::to_string(first_major) + ", " + library(code) + " for CUDA " + std::to_string(major) +
       "; both work on the one emulated device");
}

void note_missing_device(int device) {
  const int there = state().device_count();
  const auto& cluster = state().settings.cluster;
  std::string line = "GPU " + std::to_string(device) + " was asked for";
  if (const int rank = rank_in_environment(); rank >= 0) line += " by rank " + std::to_string(rank);
  line += ", and this process sees " + std::to_string(there) + " (a node of " + cluster.name +
          " has " + std::to_string(cluster.gpus_per_node) + ")";
  if (there == cluster.gpus_per_node)
    line += ": start at most " + std::to_string(there) +
            " ranks on a node, or name a cluster with larger nodes";
  note(line);
}

}  // namespace maya::session
