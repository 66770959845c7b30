// Programs that ask the file system whether there is a GPU (JAX looks for /dev/nvidia0) are told
// what a machine with one would say: a character device is there.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "session/next.h"

namespace {

constexpr const char* files[] = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"};

const char* stand_in(const char* path) {
  if (!path || std::strncmp(path, "/dev/nvidia", 11) != 0) return path;
  for (const char* file : files)
    if (std::strcmp(path, file) == 0) return "/dev/null";
  return path;
}

}  // namespace

// glibc before 2.33 exported stat as __xstat; programs built there still call that.
#define MAYA_STAT(NAME, STRUCT)                                                               \
  MAYA_WRAPPER int NAME(const char* path, struct STRUCT* out) noexcept {                      \
    static constinit const maya::session::Next<int(const char*, struct STRUCT*)> real(#NAME); \
    return real.get()(stand_in(path), out);                                                   \
  }
#define MAYA_OLD_STAT(NAME, STRUCT)                                                                \
  MAYA_WRAPPER int NAME(int version, const char* path, struct STRUCT* out) noexcept {              \
    static constinit const maya::session::Next<int(int, const char*, struct STRUCT*)> real(#NAME); \
    return real.get()(version, stand_in(path), out);                                               \
  }

MAYA_STAT(stat, stat)
MAYA_STAT(stat64, stat64)
MAYA_OLD_STAT(__xstat, stat)
MAYA_OLD_STAT(__xstat64, stat64)

MAYA_WRAPPER int access(const char* path, int mode) noexcept {
  static constinit const maya::session::Next<int(const char*, int)> real("access");
  return real.get()(stand_in(path), mode);
}
