#include "session/quiet_thread.h"

#include <pthread.h>
#include <signal.h>

#include "session/virtual_time.h"

namespace maya::session {

bool start_quiet_thread(void* (*body)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const OutsideTime outside;
  const bool started = pthread_create(&thread, nullptr, body, nullptr) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace maya::session
