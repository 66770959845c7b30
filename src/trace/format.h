// Layout of a recording on disk. docs/FORMAT.md specifies it.
#pragma once

#include <cstdint>

#include "maya/trace.h"

namespace maya::trace::format {

inline constexpr char file_magic[8] = {'M', 'A', 'Y', 'A', 'R', 'E', 'C', '\n'};
inline constexpr char tail_magic[8] = {'M', 'A', 'Y', 'A', 'T', 'L', '2', '\n'};
// Older tails without checksums. They can still be read.
inline constexpr char old_tail_magic[8] = {'M', 'A', 'Y', 'A', 'T', 'A', 'L', '\n'};
inline constexpr std::uint32_t block_magic = 0x4b4c424d;  // "MBLK"

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t session;  // random; equal in the file and its tail
  std::uint64_t reserved;
};
static_assert(sizeof(FileHeader) == 32);

// A block holds whole units, compressed by zstd.
struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t stored_bytes;
  std::uint32_t raw_bytes;
  std::uint32_t checksum;  // of the stored bytes: see checksum()
  std::uint64_t sequence;  // 0, 1, 2, …
};
static_assert(sizeof(BlockHeader) == 24);

// The block that is being filled is in a mapped file of its own, so that a killed process loses
// nothing.
struct TailHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;  // of the whole tail file
  std::uint64_t session;
  std::uint64_t sequence;  // of the block that the tail will become, or tail_invalid
};
static_assert(sizeof(TailHeader) == 32);
inline constexpr std::uint64_t tail_invalid = ~std::uint64_t{0};
inline constexpr std::uint32_t tail_bytes = 1 << 20;
// The tail is divided into pieces. A table after the header has one checksum per piece, which is 0
// until the piece is full. Pieces are small so that few records are without a checksum when the
// process is killed.
inline constexpr std::uint32_t piece_bytes = 256;
inline constexpr std::uint32_t pieces = tail_bytes / piece_bytes;
inline constexpr std::uint32_t tail_begin = sizeof(TailHeader) + pieces * sizeof(std::uint32_t);
static_assert(tail_begin % 16 == 0);
// A definition that is too large for the tail (a graph of a hundred thousand nodes) is a block of
// its own.
inline constexpr std::uint32_t largest_block = 1 << 28;

// A definition is one DefineUnit followed by its payload, padded to a multiple of 16 bytes.
enum class Define : std::uint8_t {
  text = 1,
  op,
  graph,
  communicator,
  identity,
  unimplemented,
  warning,
  closed
};
inline constexpr std::uint8_t define_kind = 255;
struct DefineUnit {
  std::uint8_t kind;  // define_kind
  Define what;
  std::uint16_t pad;
  std::uint32_t bytes;  // of the payload, before padding
  std::uint64_t index;  // tables: the entry's number; counts: the count
};
static_assert(sizeof(DefineUnit) == 16);

// FNV-1a over 8-byte words, then over the remaining bytes. It detects damage, not manipulation.
inline std::uint32_t checksum(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h = 0xcbf29ce484222325ULL;
  while (bytes >= 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, p, 8);
    h = (h ^ word) * 0x100000001b3ULL;
    h ^= h >> 29;
    p += 8, bytes -= 8;
  }
  while (bytes--) h = (h ^ *p++) * 0x100000001b3ULL;
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

// The checksum of a full piece of a tail. Never 0.
inline std::uint32_t piece_checksum(const char* tail, std::uint32_t piece) {
  const std::uint32_t begin = piece * piece_bytes < tail_begin ? tail_begin : piece * piece_bytes;
  const std::uint32_t sum = checksum(tail + begin, (piece + 1) * piece_bytes - begin);
  return sum == 0 ? 1 : sum;
}

}  // namespace maya::trace::format
