// Python code that a training process needs where only some ranks run: absent_groups.py. It is
// handed to the interpreter when the program opens torch's first library, and runs before the
// interpreter's next instruction, so in any case before torch.distributed is imported.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "session/absence.h"
#include "session/loader.h"
#include "session/python_code.h"
#include "session/python_hook.h"

namespace maya::session {

extern const char absent_groups[];  // generated from absent_groups.py, ends in 0

namespace {

int prepare_groups(void*) {
  std::string source = "ranks_that_run = [";
  for (int rank : ranks_that_run()) source += std::to_string(rank) + ",";
  run_python(source + "]\n" + absent_groups, "groups of ranks that do not run cannot be prepared");
  return 0;
}

void prepare_groups_soon() {
  using Later = int(int (*)(void*), void*);
  auto* later = reinterpret_cast<Later*>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  if (later != nullptr) later(prepare_groups, nullptr);
}

void when_torch_opens(const char* library) {
  if (std::strstr(library, "libtorch") == nullptr || !has_python()) return;
  library_opens = nullptr;
  prepare_groups_soon();
}

[[maybe_unused]] const bool watches = [] {
  if (!ranks_that_run().empty()) library_opens = when_torch_opens;
  return true;
}();

}  // namespace

void prepare_python_again() {
  if (!ranks_that_run().empty() && has_python()) prepare_groups_soon();
}

}  // namespace maya::session
