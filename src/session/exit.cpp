// Workers that Python forks, and programs in a hurry, leave by _exit, which runs no exit handlers:
// their recordings would look like those of processes that were killed.
#include <unistd.h>

#include <cstdlib>

#include "session/absence.h"
#include "session/departure.h"
#include "session/next.h"
#include "session/state.h"

namespace {

using Exit = void(int);
constinit const maya::session::Next<Exit> real_exit("_exit");

}  // namespace

MAYA_WRAPPER void _exit(int code) {
  maya::session::end_abruptly();
  maya::session::leave_job();
  maya::session::leave_with(code);
  real_exit.get()(code);
  __builtin_unreachable();
}

MAYA_WRAPPER void _Exit(int code) noexcept { _exit(code); }
