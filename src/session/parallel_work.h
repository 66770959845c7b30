// Work that a thread of the program divides among helpers: an optimizer on the CPU, tokenization.
//
// A thread that calls CUDA is known by its calls. Threads that never call it are helpers (OpenMP's,
// a thread pool's), and what they did shows in the CPU time of the process. If a calling thread was
// busy for long and helpers were as busy meanwhile, they worked together; a machine with more cores
// divides that work further.
#pragma once

#include <cstdint>

namespace maya::session {

// Threads that a parallel region of this process has: OMP_NUM_THREADS where it is set, which holds
// on the target too, else as many as the process may use processors.
struct Team {
  std::uint16_t threads{1};
  bool set{};  // by the variable
};
Team team();

// CPU time in ns that a calling thread has used since it last said so; it is no helper's.
void add_caller_time(std::uint64_t ns);

// The part of a calling thread's last `worked` ns in which helpers worked with it. What helpers did
// is counted for one calling thread only.
std::uint64_t claim_parallel_work(std::uint64_t worked);

// How long each of a team of `threads` worked together with a thread that was busy for `worked` ns,
// if the helpers used `helpers` ns of CPU time in all. 0: they did something else.
std::uint64_t together(std::uint64_t worked, std::uint64_t helpers, std::uint16_t threads);

}  // namespace maya::session
