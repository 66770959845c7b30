// A model of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp) with default settings.
// It computes which segments the allocator requests from the device for a sequence of tensor
// allocations and releases.
//
// Sizes are rounded up to multiples of 512 bytes. Tensors of up to 1 MiB are placed in segments of
// 2 MiB, tensors of up to 10 MiB in segments of 20 MiB. Larger tensors get a segment of their own,
// whose size is a multiple of 2 MiB. The allocator uses the smallest free block of the same stream
// that is large enough, and the lowest address among equal ones. The rest of the block stays free,
// unless it is smaller than 512 bytes (small pool) or at most 1 MiB (large pool). Adjacent free
// blocks are merged. Segments that are wholly free are released by empty_cache(); this model does
// not release them by itself, as PyTorch does when the device is full.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace maya::collate {

class CachingAllocator {
 public:
  // Returns the size of the new segment in bytes, or 0 if no new segment was needed. `tensor` is
  // any number that is not in use.
  std::uint64_t allocate(std::uint64_t tensor, std::uint64_t bytes, std::uint16_t stream);
  void release(std::uint64_t tensor);

  struct Segment {
    std::uint32_t number{};  // in the order of their requests, from 0
    std::uint64_t bytes{};
  };
  // Releases the segments in which no tensor is left.
  std::vector<Segment> empty_cache();

  std::uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::uint64_t bytes{};
    std::uint16_t stream{};
    bool small{}, free{}, first{};  // first: at the beginning of its segment
    std::uint32_t segment{};        // its number, of the first block
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by address
  using Key = std::tuple<bool, std::uint16_t, std::uint64_t, std::uint64_t>;

  static Key key(const Blocks::value_type& block) {
    return {block.second.small, block.second.stream, block.second.bytes, block.first};
  }
  void join_with_next(Blocks::iterator block);
  // Like the device: the lowest addresses that are free.
  std::uint64_t take_addresses(std::uint64_t bytes);

  Blocks blocks_;
  std::set<Key> free_;  // pool, stream, bytes, address
  std::unordered_map<std::uint64_t, std::uint64_t> address_of_;
  std::map<std::uint64_t, std::uint64_t> gaps_;  // addresses of released segments → bytes
  std::uint64_t end_{1}, reserved_{};
  std::uint32_t segments_{};
};

}  // namespace maya::collate
