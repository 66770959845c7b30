#include "collate/caching_allocator.h"

#include <iterator>
#include <utility>

namespace maya::collate {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
constexpr std::uint64_t unit = 512, most_small = mib, small_segment = 2 * mib,
                        shared_segment = 20 * mib, least_alone = 10 * mib, round_alone = 2 * mib;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

std::uint64_t segment_for(std::uint64_t bytes) {
  if (bytes <= most_small) return small_segment;
  return bytes < least_alone ? shared_segment : round_up(bytes, round_alone);
}

}  // namespace

std::uint64_t CachingAllocator::allocate(std::uint64_t tensor, std::uint64_t bytes,
                                         std::uint16_t stream) {
  bytes = round_up(bytes == 0 ? 1 : bytes, unit);
  const bool small = bytes <= most_small;
  std::uint64_t taken = 0;
  Blocks::iterator block;
  const auto fit = free_.lower_bound(Key{small, stream, bytes, 0});
  if (fit != free_.end() && std::get<0>(*fit) == small && std::get<1>(*fit) == stream) {
    block = blocks_.find(std::get<3>(*fit));
    free_.erase(fit);
  } else {
    taken = segment_for(bytes);
    reserved_ += taken;
    block =
        blocks_.emplace(take_addresses(taken), Block{taken, stream, small, true, true, segments_++})
            .first;
  }
  block->second.free = false;
  const std::uint64_t left = block->second.bytes - bytes;
  if (small ? left >= unit : left > most_small) {
    block->second.bytes = bytes;
    const auto rest =
        blocks_.emplace(block->first + bytes, Block{left, stream, small, true, false}).first;
    free_.insert(key(*rest));
  }
  address_of_[tensor] = block->first;
  return taken;
}

std::uint64_t CachingAllocator::take_addresses(std::uint64_t bytes) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [address, size] = *gap;
    if (size < bytes) continue;
    gaps_.erase(gap);
    if (size > bytes) gaps_.emplace(address + bytes, size - bytes);
    return address;
  }
  end_ += bytes;
  return end_ - bytes;
}

std::vector<CachingAllocator::Segment> CachingAllocator::empty_cache() {
  std::vector<Segment> released;
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    const bool whole = block->second.first && (next == blocks_.end() || next->second.first);
    if (whole && block->second.free) {
      const auto [address, bytes] = std::pair(block->first, block->second.bytes);
      released.push_back({block->second.segment, bytes});
      reserved_ -= bytes;
      free_.erase(key(*block));
      blocks_.erase(block);
      const auto gap = gaps_.emplace(address, bytes).first;
      if (gap != gaps_.begin())
        if (const auto before = std::prev(gap); before->first + before->second == address) {
          before->second += bytes;
          gaps_.erase(gap);
        }
    }
    block = next;
  }
  return released;
}

void CachingAllocator::join_with_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.first || !next->second.free || !block->second.free)
    return;
  free_.erase(key(*block)), free_.erase(key(*next));
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
  free_.insert(key(*block));
}

void CachingAllocator::release(std::uint64_t tensor) {
  const auto known = address_of_.find(tensor);
  if (known == address_of_.end()) return;
  auto block = blocks_.find(known->second);
  address_of_.erase(known);
  block->second.free = true;
  free_.insert(key(*block));
  join_with_next(block);
  if (!block->second.first) join_with_next(std::prev(block));
}

}  // namespace maya::collate
