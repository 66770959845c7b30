// A thread that wants Python's lock while the interpreter shuts down is ended by pthread_exit,
// which unwinds C++ frames that must not be unwound: the process aborts. With a GPU a program waits
// for the device before it ends, and PyTorch's backward threads are idle by then; here nothing
// takes time, and the race is lost now and then. So such a thread is left where it is, as CPython
// does itself from 3.14 on.
#include <pthread.h>
#include <unistd.h>

#include "session/next.h"

namespace {

using Exit = void(void*);
constinit const maya::session::Next<Exit> real_exit("pthread_exit");

bool interpreter_ends() {
  using Asked = int();
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"})  // from 3.13, before
    if (auto* ask = reinterpret_cast<Asked*>(dlsym(RTLD_DEFAULT, name))) return ask() != 0;
  return false;
}

}  // namespace

MAYA_WRAPPER void pthread_exit(void* value) {
  // Not for ever: somebody might join it.
  if (interpreter_ends()) sleep(20);
  real_exit.get()(value);
  __builtin_unreachable();
}
