#include "session/python_hook.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "session/absence.h"
#include "session/loader.h"
#include "session/python_code.h"

namespace maya::session {

extern const char absent_groups[];  // generated from absent_groups.py, ends in 0

namespace {

int prepare_groups(void*) {
  std::string source = "ranks_that_run = [";
  for (int rank : ranks_that_run()) source += std::to_string(rank) + ",";
  run_python(source + "]\n" + absent_groups, "groups of ranks that do not run cannot be prepared");
  return 0;
}

void hand_over() {
  using Later = int(int (*)(void*), void*);
  auto* later = reinterpret_cast<Later*>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  library_opens = nullptr;
  if (later != nullptr) later(prepare_groups, nullptr);
}

void when_torch_opens(const char* library) {
  if (std::strstr(library, "libtorch") != nullptr && has_python()) hand_over();
}

}  // namespace

void prepare_absent_groups() {
  if (has_python())
    hand_over();
  else
    library_opens = when_torch_opens;
}

}  // namespace maya::session
