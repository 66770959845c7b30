// How programs find driver functions: by name and CUDA version.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "abi/cuda.h"
#include "session/session.h"

namespace {

struct Entry {
  const char* function;
  int since;
  const char* symbol;
  const char* per_thread;
};

#define MAYA_DRIVER_ENTRY(function, since, symbol, per_thread) {#function, since, #symbol, #per_thread},
const Entry entries[] = {
#include "shim/driver_entry_points.inc"
};
#undef MAYA_DRIVER_ENTRY

void* own_library() {
  static void* handle = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&own_library), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return handle;
}

}  // namespace

extern "C" {

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* status) {
  if (name == nullptr || function == nullptr) return 1;
  *function = nullptr;
  constexpr unsigned long long per_thread = 2;
  int answer = 1;  // not found
  for (const auto& entry : entries) {
    if (std::strcmp(entry.function, name) != 0) continue;
    if (entry.since > version) {
      answer = 2;  // exists, but not for so old a version
      continue;
    }
    *function = dlsym(own_library(), flags & per_thread ? entry.per_thread : entry.symbol);
    if (*function == nullptr) *function = dlsym(own_library(), entry.symbol);
    answer = *function != nullptr ? 0 : 1;
    break;
  }
  if (status != nullptr) *status = answer;
  return answer == 0 || status != nullptr ? 0 : 500;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

// The real runtime, linked statically into a program, asks for private tables and then checks that the driver is
// genuine. We cannot be, so say what to do instead.
int cuGetExportTable(const void** table, const void*) {
  static bool told = false;
  if (!told) {
    told = true;
    Dl_info info{};
    dladdr(__builtin_return_address(0), &info);
    std::fprintf(stderr,
                 "maya: %s links the CUDA runtime statically, which emulation cannot reach; rebuild it with `nvcc -cudart shared`\n",
                 info.dli_fname != nullptr ? info.dli_fname : "this program");
    maya::session::warn("a static CUDA runtime was met: its calls are not emulated (rebuild with -cudart shared)");
  }
  if (table != nullptr) *table = nullptr;
  return 500;
}

}  // extern "C"
