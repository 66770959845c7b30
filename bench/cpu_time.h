// Time for benchmarks: of this thread, so that a busy machine does not enter.
#pragma once

#include <time.h>

inline double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
