// Memory as the threads of one launch see it: what was known before, and what they wrote since.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "decode/execution.h"
#include "decode/ptx_thread.h"

namespace maya::decode::ptx {

// Global memory. Blocks run in no particular order on a GPU: a block that reads what another one
// wrote in the same launch gets an unknown value, unless both use atomic operations, or it has
// waited for the other one before (a scan that looks back at the blocks in front of it).
class GlobalMemory {
 public:
  explicit GlobalMemory(const Launch& launch) : launch_(launch) {}

  // At most 8 bytes.
  Value load(std::uint64_t address, int bytes, std::uint32_t block, bool atomic);
  // False: nobody's memory.
  bool store(std::uint64_t address, int bytes, const Value& value, std::uint32_t block);
  // The block has looked at what others wrote with an acquiring or atomic operation.
  void order(std::uint32_t block) { ordered_ = block + 1; }
  // Something was written somewhere behind this address.
  void blur(std::uint64_t address);
  // Something may have been written behind this address, but not where this launch's known bytes
  // are: other blocks did.
  void forget(std::uint64_t address);

  bool wrote_known() const { return wrote_known_; }
  // Once, at the end.
  void effects(Effects& to);

 private:
  static constexpr std::uint64_t line_bytes = Effects::line_bytes, word = 4;
  // Notes that the bytes there were looked at as they were before the launch.
  void note_read(std::uint64_t address, int bytes);
  // Nothing was known anywhere around the address before the launch.
  bool in_unknown_area(std::uint64_t address, int bytes);
  void sort_reads();
  static constexpr std::uint32_t several = ~std::uint32_t{0};
  struct Line {
    std::array<std::byte, line_bytes> data{};
    std::uint64_t written{}, known{};                       // one bit per byte
    std::array<std::uint32_t, line_bytes / word> writer{};  // block + 1
  };
  Line& line_of(std::uint64_t number);
  bool blurred(std::uint64_t address, int bytes) const;
  // Both remember the last answer: neighbouring threads touch neighbouring bytes.
  bool owned(std::uint64_t address, std::uint64_t bytes);
  const void* known_before(std::uint64_t address, int bytes);

  const Launch& launch_;
  std::unordered_map<std::uint64_t, Line> lines_;
  Line* written_{};  // the last one, whose neighbours are mostly written next
  std::uint64_t written_number_{};
  std::vector<std::uint64_t> behind_, forgotten_;
  static constexpr std::size_t most_reads = 1 << 20;
  std::vector<std::uint64_t> reads_;  // lines, some of them several times
  bool too_many_reads_{};
  std::unordered_map<std::uint64_t, bool> areas_;  // read from; whether nothing in it was known
  std::uint64_t owned_from_{}, owned_to_{};
  std::uint64_t known_line_{~std::uint64_t{0}};
  const std::byte* known_bytes_{};
  std::uint32_t ordered_{};
  bool wrote_known_{};
};

// Shared memory of one block.
class SharedMemory {
 public:
  void reset(std::uint64_t bytes) {
    data_.assign(bytes, {});
    known_.assign(bytes, false);
  }
  Value load(std::uint64_t address, int bytes) const;
  // False: beyond its end.
  bool store(std::uint64_t address, int bytes, const Value& value);

 private:
  std::vector<std::byte> data_;
  std::vector<bool> known_;
};

}  // namespace maya::decode::ptx
