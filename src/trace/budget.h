// Limits on the contents of a recording. A recording is untrusted input: a small file must not
// exhaust the machine that reads it. Ordinary jobs stay far below each limit (docs/security.md).
#pragma once

#include <cstdint>

namespace maya::trace::budget {

// Blocks of real recordings compress by a factor of 5 to 100. A block that decompresses to at most
// `unpacked_bytes` is read in any case.
inline constexpr std::uint64_t unpacked_bytes = 16 << 20;
inline constexpr std::uint64_t most_compression = 256;
// Nodes in the definitions of all graphs of a rank.
inline constexpr std::uint64_t graph_nodes = 8 << 20;
// Operations of a rank, with graph launches expanded. The limit is `operations` plus
// `operations_per_byte` for each byte of the file. For comparison: a step that launches one graph
// of 2,000 kernels takes about 30 bytes.
inline constexpr std::uint64_t operations = 4 << 20;
inline constexpr std::uint64_t operations_per_byte = 64;
// Streams with work, and threads, of one process. Programs use about ten. The simulator visits all
// streams whenever one of them becomes idle.
inline constexpr std::uint64_t streams = 16 << 10;
inline constexpr std::uint64_t threads = 16 << 10;
// Number of waits for the whole device times number of streams.
inline constexpr std::uint64_t stream_waits = 64 << 20;

}  // namespace maya::trace::budget
