// How fast this machine runs code of the kind that stands between two launches.
#pragma once

namespace maya::launch {

// Microseconds of one round of a fixed piece of work: an interpreter's loop with calls through
// pointers, branches that follow the data and look-ups in half a megabyte, as Python and a
// framework's dispatcher do. The best of many rounds (some 20 ms in all), so that other work on the
// machine hardly shows. The catalogue says what the reference host takes (`benchmark_us`).
double host_benchmark_us();

}  // namespace maya::launch
