// Reads of the processor's time-stamp counter (`rdtsc`) in libraries that stamp events with it.
//
// PyTorch's profiler stamps CPU ops with the counter, libzmq decides by it whether to read the
// clock. The counter is real; in virtual time that would be wrong, and no call is made that could
// be intercepted. Compilers render a read as `rdtsc` and, within a few instructions, `shl rdx, 32`.
// Where both are found, and all between them is understood, the read is replaced in memory by a
// jump to code that asks for the job's time. The files stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maya::session {

struct CounterRead {
  std::size_t offset{};  // of `rdtsc`
  std::size_t moved{};   // bytes of the instructions behind it that make room for a jump
};
struct CounterReads {
  std::vector<CounterRead> sites;
  std::size_t unknown{};  // looks like a read, but is followed by something not understood
};
CounterReads find_counter_reads(std::span<const std::uint8_t> code);

// Replaces the reads in a part of the address space that is mapped for execution. False: the kernel
// does not allow it, or there is no memory near enough; nothing was changed.
bool replace_counter_reads(std::span<std::uint8_t> code, const std::vector<CounterRead>& sites);

}  // namespace maya::session
