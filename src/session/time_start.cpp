// The process's time begins when everything else that runs before main is done.
#include "session/timed_wait.h"

__attribute__((constructor)) static void begin_time() { maya::session::enter_virtual_time(); }
