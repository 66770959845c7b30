// Measures how fast this machine runs the kind of code that runs between two launches.
#pragma once

namespace maya::launch {

// Microseconds of one round of a fixed benchmark: an interpreter loop with indirect calls,
// data-dependent branches and look-ups in half a megabyte, like Python and the dispatcher of a
// framework. The result is the minimum of many rounds (about 20 ms in total), so that other work on
// the machine has little influence. The catalogue has the result of the reference host
// (`benchmark_us`).
double host_benchmark_us();

}  // namespace maya::launch
