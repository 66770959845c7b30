// What a recording may hold. It is untrusted input: a small file must not exhaust the machine that
// reads it. Ordinary jobs stay far below each of these (docs/security.md).
#pragma once

#include <cstdint>

namespace maya::trace::budget {

// Blocks of real recordings compress 5 to 100 times. What unpacks to less than this is read in any
// case.
inline constexpr std::uint64_t unpacked_bytes = 16 << 20;
inline constexpr std::uint64_t most_compression = 256;
// Nodes of all graphs of a rank, as they are defined.
inline constexpr std::uint64_t graph_nodes = 8 << 20;
// Operations of a rank with its graph launches unfolded: so many in any case, and for each byte of
// the file so many more. A step that is one launch of a graph of 2,000 kernels takes some 30 bytes.
inline constexpr std::uint64_t operations = 4 << 20;
inline constexpr std::uint64_t operations_per_byte = 64;
// Streams of a process that have work. Programs use some ten; the simulator looks at all of them
// when one has nothing to do.
inline constexpr std::uint64_t streams = 16 << 10;
// Threads likewise.
inline constexpr std::uint64_t threads = 16 << 10;
// Waits of the host for all streams of the device times the streams there are.
inline constexpr std::uint64_t stream_waits = 64 << 20;

}  // namespace maya::trace::budget
