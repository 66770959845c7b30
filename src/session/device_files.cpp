// Programs that ask the file system whether there is a GPU (JAX looks for /dev/nvidia0) are told
// what a machine with one would say: a character device is there.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace {

constexpr const char* files[] = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"};

const char* stand_in(const char* path) {
  if (!path || std::strncmp(path, "/dev/nvidia", 11) != 0) return path;
  for (const char* file : files)
    if (std::strcmp(path, file) == 0) return "/dev/null";
  return path;
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define MAYA_EXPORT extern "C" __attribute__((visibility("default")))

// glibc before 2.33 exported stat as __xstat; programs built there still call that.
#define MAYA_STAT(NAME, STRUCT)                                                 \
  MAYA_EXPORT int NAME(const char* path, struct STRUCT* out) noexcept {         \
    static const auto real = next<int (*)(const char*, struct STRUCT*)>(#NAME); \
    return real(stand_in(path), out);                                           \
  }
#define MAYA_OLD_STAT(NAME, STRUCT)                                                  \
  MAYA_EXPORT int NAME(int version, const char* path, struct STRUCT* out) noexcept { \
    static const auto real = next<int (*)(int, const char*, struct STRUCT*)>(#NAME); \
    return real(version, stand_in(path), out);                                       \
  }

MAYA_STAT(stat, stat)
MAYA_STAT(stat64, stat64)
MAYA_OLD_STAT(__xstat, stat)
MAYA_OLD_STAT(__xstat64, stat64)

MAYA_EXPORT int access(const char* path, int mode) noexcept {
  static const auto real = next<int (*)(const char*, int)>("access");
  return real(stand_in(path), mode);
}
