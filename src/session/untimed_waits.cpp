// Functions of the C library that wait for another thread without a deadline.
//
// They wait as ever. But what the thread did before the wait and what it does after it are told
// apart here: a thread that is woken goes on with the later of its own time and that of the thread
// that woke it, and only what it does from then on comes on top. This holds for its virtual time
// and, with a record of its own, for the simulation of the recording.
#include <pthread.h>
#include <semaphore.h>

#include "session/host_clock.h"
#include "session/next.h"
#include "session/state.h"
#include "session/virtual_time.h"

namespace {

using namespace maya::session;

constinit const Next<int(pthread_cond_t*, pthread_mutex_t*)> real_wait("pthread_cond_wait");
constinit const Next<int(sem_t*)> real_sem_wait("sem_wait");

class Wait {
 public:
  Wait()
      : virtual_(in_virtual_time()), recorded_(host_clock().records() && !host_clock().inside()) {
    if (recorded_) state().recorder.record_sleep();
    if (virtual_) thread_now();  // whoever is woken by this thread goes on no earlier
  }
  ~Wait() {
    if (virtual_)
      thread_resumes();
    else if (recorded_)
      host_clock().woken();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  bool virtual_, recorded_;
};

}  // namespace

MAYA_WRAPPER int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  const Wait wait;
  return real_wait.get()(condition, mutex);
}

MAYA_WRAPPER int sem_wait(sem_t* semaphore) {
  if (sem_trywait(semaphore) == 0) return 0;
  const Wait wait;
  return real_sem_wait.get()(semaphore);
}
