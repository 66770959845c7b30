// What is to happen when a training process opens torch's first library: it begins to report long
// waits, and where only some ranks run the interpreter is handed absent_store.py and
// absent_groups.py. That code runs before the interpreter's next instruction, so in any case before
// torch.distributed is imported.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "session/absence.h"
#include "session/loader.h"
#include "session/python_code.h"
#include "session/python_hook.h"
#include "session/settings.h"
#include "session/start.h"
#include "session/waiting.h"

namespace maya::session {

extern const char absent_groups[], absent_store[];  // generated from the files, end in 0

namespace {

int prepare_groups(void*) {
  std::string source = "ranks_that_run = [";
  for (int rank : ranks_that_run()) source += std::to_string(rank) + ",";
  run_python(source + "]\n" + absent_store + absent_groups,
             "groups of ranks that do not run cannot be prepared");
  return 0;
}

void prepare_groups_soon() {
  using Later = int(int (*)(void*), void*);
  auto* later = reinterpret_cast<Later*>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  if (later != nullptr) later(prepare_groups, nullptr);
}

void prepare() {
  // A template is no rank yet: what it asked for here would decide whom it may be forked into.
  if (is_template()) return;
  if (!ranks_that_run().empty()) prepare_groups_soon();
  // Workers of a data loader and compilers wait as a matter of course.
  if (rank_in_environment() >= 0 && owns_rank()) report_long_waits();
}

void when_torch_opens(const char* library) {
  if (std::strstr(library, "libtorch") == nullptr || !has_python()) return;
  library_opens = nullptr;
  prepare();
}

[[maybe_unused]] const bool watches = [] {
  if (!ranks_that_run().empty() || rank_in_environment() >= 0) library_opens = when_torch_opens;
  return true;
}();

}  // namespace

void prepare_python_again() {
  if (has_python()) prepare();
}

}  // namespace maya::session
