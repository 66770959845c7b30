// PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp) with its default settings: which
// segments it asks of the device for a sequence of tensors that come and go.
//
// Sizes are multiples of 512 bytes. Tensors up to 1 MiB are cut from segments of 2 MiB, up to
// 10 MiB from segments of 20 MiB, larger ones get a segment of their own, a multiple of 2 MiB. The
// smallest free piece of the same stream that is large enough is taken, the lowest address among
// equals; what is left of it stays free, unless that is less than 512 bytes (small) or not more
// than 1 MiB (large). Neighbours that are free join. Segments are never given back here: that
// happens when the device is full.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace maya::collate {

class CachingAllocator {
 public:
  // Returns the bytes of the new segment that was needed, or 0. `tensor` is any number that is not
  // in use.
  std::uint64_t allocate(std::uint64_t tensor, std::uint64_t bytes, std::uint16_t stream);
  void release(std::uint64_t tensor);

  std::uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::uint64_t bytes{};
    std::uint16_t stream{};
    bool small{}, free{}, first{};  // first: of its segment
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by address
  using Key = std::tuple<bool, std::uint16_t, std::uint64_t, std::uint64_t>;

  static Key key(const Blocks::value_type& block) {
    return {block.second.small, block.second.stream, block.second.bytes, block.first};
  }
  void join_with_next(Blocks::iterator block);

  Blocks blocks_;
  std::set<Key> free_;  // pool, stream, bytes, address
  std::unordered_map<std::uint64_t, std::uint64_t> address_of_;
  std::uint64_t end_{1}, reserved_{};
};

}  // namespace maya::collate
