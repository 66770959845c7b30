// The real runtime, linked statically into a program, asks the driver for private tables and then
// checks that it is genuine. We cannot be, so the program is told what to do instead.
#include <dlfcn.h>

#include <cstdio>

#include "session/session.h"

extern "C" int cuGetExportTable(const void** table, const void*) {
  static bool told = false;
  if (!told) {
    told = true;
    Dl_info info{};
    dladdr(__builtin_return_address(0), &info);
    std::fprintf(stderr,
                 "maya: %s links the CUDA runtime statically, which emulation cannot reach; "
                 "rebuild it with `nvcc -cudart shared`\n",
                 info.dli_fname != nullptr ? info.dli_fname : "this program");
    maya::session::warn(
        "a static CUDA runtime was met: its calls are not emulated (rebuild with -cudart shared)");
  }
  if (table != nullptr) *table = nullptr;
  return 500;
}
