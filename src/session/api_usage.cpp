// Whether the program trains, before it has trained. PyTorch reports the first use of its parts to
// c10::LogAPIUsage, "python.optimizer" when the first optimizer is made. `maya run --stop-after`
// then knows that what repeats without an update (an evaluation before the first step, hundreds of
// micro-batches of one step) is not the step (launch/stop_after.h). From then on optimizers also
// say when they have updated their parameters (optimizer_steps.py).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "session/next.h"
#include "session/python_code.h"
#include "session/session.h"
#include "session/state.h"

namespace maya::session {

extern const char optimizer_steps[];  // generated from optimizer_steps.py, ends in 0

namespace {

extern "C" void maya_optimizer_updated(const char* source) {
  Call call;
  Recorder& recorder = state().recorder;
  if (recorder.begun()) recorder.record(trace::Kind::step_boundary, 0, recorder.text(source));
}

// Of libc10 with the C++ library's present strings, and with those before C++11 (torch before 2.6).
constinit const Next<void(const void*)> real_log(
    "_ZN3c1011LogAPIUsageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
constinit const Next<void(const void*)> real_log_before_cxx11("_ZN3c1011LogAPIUsageERKSs");

void note_use(std::string_view what) {
  if (what != "python.optimizer") return;
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (run == nullptr) return;
  const std::string folder = std::string(run) + "/exchange";
  mkdir(folder.c_str(), 0755);
  const int file =
      open((folder + "/optimizer").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file >= 0) close(file);
  // The optimizer's constructor calls this, so the interpreter's lock is held.
  if (has_python())
    run_python(
        "address = " + std::to_string(reinterpret_cast<std::uintptr_t>(&maya_optimizer_updated)) +
            "\n" + optimizer_steps,
        "the updates of optimizers cannot be followed");
}

}  // namespace
}  // namespace maya::session

MAYA_WRAPPER void _ZN3c1011LogAPIUsageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    const std::string* what) {
  maya::session::note_use(*what);
  if (auto* log = maya::session::real_log.get()) log(what);
}

// Such a string is a pointer to its characters.
MAYA_WRAPPER void _ZN3c1011LogAPIUsageERKSs(const char* const* what) {
  maya::session::note_use(*what);
  if (auto* log = maya::session::real_log_before_cxx11.get()) log(what);
}
