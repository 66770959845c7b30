#include "values/known_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace maya::values {
namespace {
void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

void repeat(char* to, const void* pattern, std::uint64_t pattern_bytes, std::uint64_t bytes) {
  std::uint64_t done = std::min(pattern_bytes, bytes);
  std::memcpy(to, pattern, done);
  if (done == 1)
    std::memset(to, *to, bytes);
  else
    for (; done < bytes; done += std::min(done, bytes - done))  // what is there, twice as long
      std::memcpy(to + done, to, std::min(done, bytes - done));
}
}  // namespace

KnownBytes::KnownBytes(std::uint64_t base, std::uint64_t span) : base_(base), span_(span) {
  std::uint64_t fine = span / grain / 64 + 64, words = fine + span / coarse / 64 + 1;
  void* map = mmap(nullptr, words * 8, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED || span == 0) {
    span_ = 0;
    return;
  }
  madvise(map, words * 8, MADV_DONTDUMP);
  bits_ = static_cast<std::atomic<std::uint64_t>*>(map);
}

bool KnownBytes::possible_in(std::uint64_t address, std::uint64_t bytes) const {
  std::uint64_t offset = address - base_;
  if (offset >= span_ || bytes == 0) return false;
  std::uint64_t last = offset + std::min(bytes, span_ - offset) - 1;
  for (std::uint64_t chunk = offset / coarse; chunk <= last / coarse; ++chunk) {
    std::uint64_t word = coarse_bits()[chunk / 64].load(std::memory_order_relaxed) >> (chunk % 64);
    if (word == 0) {
      chunk |= 63;
      continue;
    }
    if ((word & 1) == 0) continue;
    std::uint64_t bit = std::max(offset, chunk * coarse) / grain;
    std::uint64_t end = std::min(last, chunk * coarse + coarse - 1) / grain;
    while (bit <= end) {
      std::uint64_t fine = bits_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64);
      if (fine != 0 && bit + static_cast<std::uint64_t>(__builtin_ctzll(fine)) <= end) return true;
      bit = (bit | 63) + 1;
    }
  }
  return false;
}

void KnownBytes::set_bits(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t last = (address + bytes - 1 - base_) / grain;
  for (std::uint64_t bit = (address - base_) / grain; bit <= last; ++bit)
    bits_[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_relaxed);
  for (std::uint64_t bit = (address - base_) / coarse;
       bit <= (address + bytes - 1 - base_) / coarse; ++bit)
    coarse_bits()[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_relaxed);
}

// Clears the grains in which nothing known is left.
void KnownBytes::clear_bits(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t last = (address + bytes - 1 - base_) / grain;
  for (std::uint64_t bit = (address - base_) / grain; bit <= last; ++bit) {
    // Little is known of a large stretch: pass over the rest by words.
    const std::uint64_t rest = bits_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64);
    if (rest == 0) {
      bit |= 63;
      continue;
    }
    bit += static_cast<std::uint64_t>(__builtin_ctzll(rest));
    if (bit > last) break;
    std::uint64_t begin = base_ + bit * grain;
    auto it = map_.upper_bound(begin);
    bool here = it != map_.end() && it->first < begin + grain;
    if (!here && it != map_.begin()) here = std::prev(it)->second.end > begin;
    if (!here)
      bits_[bit / 64].fetch_and(~(std::uint64_t{1} << (bit % 64)), std::memory_order_relaxed);
  }
  for (std::uint64_t bit = (address - base_) / coarse;
       bit <= (address + bytes - 1 - base_) / coarse; ++bit) {
    constexpr std::uint64_t words = coarse / grain / 64;
    bool empty = true;
    for (std::uint64_t word = bit * words; empty && word < (bit + 1) * words; ++word)
      empty = bits_[word].load(std::memory_order_relaxed) == 0;
    if (empty)
      coarse_bits()[bit / 64].fetch_and(~(std::uint64_t{1} << (bit % 64)),
                                        std::memory_order_relaxed);
  }
}

void KnownBytes::erase(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t end = address + bytes;
  auto it = map_.upper_bound(address);
  if (it != map_.begin() && std::prev(it)->second.end > address) --it;
  bool any = false;
  while (it != map_.end() && it->first < end) {
    any = true;
    std::uint64_t from = it->first;
    Stretch stretch = it->second;
    it = map_.erase(it);
    // A pending stretch is all or nothing: what is left of one cannot be resolved by parts.
    if (stretch.pending != nullptr) continue;
    if (from < address) map_[from] = {address, nullptr, stretch.supposed};
    if (stretch.end > end)
      it = std::next(map_.emplace(end, Stretch{stretch.end, nullptr, stretch.supposed}).first);
  }
  if (any) clear_bits(address, bytes);
}

void KnownBytes::insert(std::uint64_t address, std::uint64_t bytes,
                        std::shared_ptr<Pending> pending, std::uint8_t supposed) {
  erase(address, bytes);
  std::uint64_t end = address + bytes;
  set_bits(address, bytes);
  auto joins = [](const Stretch& s) { return s.pending == nullptr && s.supposed == 0; };
  if (pending == nullptr &&
      supposed == 0) {  // join neighbours, so that long copies in pieces stay one stretch
    auto next = map_.find(end);
    if (next != map_.end() && joins(next->second)) {
      end = next->second.end;
      map_.erase(next);
    }
    auto it = map_.lower_bound(address);
    if (it != map_.begin()) {
      --it;
      if (it->second.end == address && joins(it->second)) {
        it->second.end = end;
        return;
      }
    }
  }
  map_[address] = {end, std::move(pending), supposed};
}

KnownBytes::Map::const_iterator KnownBytes::stretch_at(std::uint64_t address) const {
  auto it = map_.upper_bound(address);
  if (it == map_.begin()) return map_.end();
  --it;
  return it->second.end > address ? it : map_.end();
}

void KnownBytes::store(std::uint64_t address, const void* from, std::uint64_t bytes) {
  if (bytes == 0 || !inside(address, bytes)) return;
  std::lock_guard guard(mutex_);
  insert(address, bytes, nullptr);
  std::memmove(at(address), from, bytes);
}

void KnownBytes::fill(std::uint64_t address, const void* pattern, std::uint64_t pattern_bytes,
                      std::uint64_t bytes) {
  if (bytes == 0 || pattern_bytes == 0 || !inside(address, bytes)) return;
  std::lock_guard guard(mutex_);
  insert(address, bytes, nullptr);
  repeat(static_cast<char*>(at(address)), pattern, pattern_bytes, bytes);
}

// The pattern itself is kept where the data would be.
void KnownBytes::suppose(std::uint64_t address, const void* pattern, std::uint64_t pattern_bytes,
                         std::uint64_t bytes) {
  if (bytes == 0 || pattern_bytes == 0 || pattern_bytes > 8 || !inside(address, bytes)) return;
  std::lock_guard guard(mutex_);
  insert(address, bytes, nullptr, static_cast<std::uint8_t>(pattern_bytes));
  repeat(static_cast<char*>(at(address)), pattern, pattern_bytes, bytes);
}

const void* KnownBytes::supposed(std::uint64_t address, std::uint64_t bytes,
                                 std::uint64_t& pattern_bytes) {
  if (bytes == 0 || !inside(address, bytes) || !possible(address)) return nullptr;
  std::lock_guard guard(mutex_);
  auto it = stretch_at(address);
  if (it == map_.end() || it->second.supposed == 0 || it->second.end < address + bytes)
    return nullptr;
  pattern_bytes = it->second.supposed;
  return at(address);
}

void KnownBytes::promise(std::uint64_t address, std::uint64_t bytes,
                         std::shared_ptr<Pending> pending) {
  if (bytes == 0 || !inside(address, bytes)) return;
  std::lock_guard guard(mutex_);
  insert(address, bytes, std::move(pending));
}

// Resolves what is pending in the range, outside the lock: peers may need this process meanwhile.
void KnownBytes::settle(std::unique_lock<std::mutex>& lock, std::uint64_t address,
                        std::uint64_t bytes) {
  for (;;) {
    auto it = map_.upper_bound(address);
    if (it != map_.begin() && std::prev(it)->second.end > address) --it;
    while (it != map_.end() && it->first < address + bytes && it->second.pending == nullptr) ++it;
    if (it == map_.end() || it->first >= address + bytes) return;
    std::uint64_t from = it->first, size = it->second.end - from;
    auto pending = it->second.pending;
    lock.unlock();
    bool known = pending->resolvable(size);
    std::vector<char> result(known ? size : 0);
    if (known) wait_([&] { known = pending->resolve(result.data(), size); });
    lock.lock();
    it = map_.find(from);
    if (it == map_.end() || it->second.pending != pending) continue;  // somebody was faster
    erase(from, size);
    if (known) {
      insert(from, size, nullptr);
      std::memcpy(at(from), result.data(), size);
    }
  }
}

bool KnownBytes::covered(std::uint64_t address, std::uint64_t bytes) const {
  std::uint64_t end = address + bytes;
  while (address < end) {
    auto it = stretch_at(address);
    if (it == map_.end() || it->second.pending != nullptr || it->second.supposed != 0) return false;
    address = it->second.end;
  }
  return true;
}

bool KnownBytes::load(void* to, std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return true;
  std::unique_lock lock(mutex_);
  if (!inside(address, bytes)) {
    std::memset(to, 0, bytes);
    return false;
  }
  settle(lock, address, bytes);
  if (covered(address, bytes)) {
    std::memcpy(to, at(address), bytes);
    return true;
  }
  std::memset(to, 0, bytes);
  auto it = map_.upper_bound(address);
  if (it != map_.begin()) --it;
  for (; it != map_.end() && it->first < address + bytes; ++it) {
    std::uint64_t from = std::max(address, it->first),
                  end = std::min(address + bytes, it->second.end);
    if (from < end) std::memcpy(static_cast<char*>(to) + (from - address), at(from), end - from);
  }
  return false;
}

void KnownBytes::forget(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || address - base_ >= span_) return;
  bytes = std::min(bytes, span_ - (address - base_));
  std::lock_guard guard(mutex_);
  erase(address, bytes);
}

void KnownBytes::forget_from(std::uint64_t address, std::uint64_t at_most) {
  if (!possible(address)) return;
  std::lock_guard guard(mutex_);
  if (auto it = stretch_at(address); it != map_.end())
    erase(address, std::min(it->second.end - address, at_most));
}

void KnownBytes::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0 || !inside(to, bytes)) return;
  std::unique_lock lock(mutex_);
  if (inside(from, bytes)) {
    auto whole = map_.find(from);
    if (whole != map_.end() && whole->second.pending != nullptr &&
        whole->second.end == from + bytes && whole->second.pending->copyable()) {
      auto pending = whole->second.pending;
      return insert(to, bytes, std::move(pending));
    }
    settle(lock, from, bytes);
    if (covered(from, bytes)) {
      std::vector<char> data(bytes);
      std::memcpy(data.data(), at(from), bytes);
      insert(to, bytes, nullptr);
      std::memcpy(at(to), data.data(), bytes);
      return;
    }
    auto it = stretch_at(from);
    if (it != map_.end() && it->second.supposed != 0 && it->second.end >= from + bytes) {
      char pattern[8];
      std::uint8_t size = it->second.supposed;
      std::memcpy(pattern, at(from), size);
      insert(to, bytes, nullptr, size);
      return repeat(static_cast<char*>(at(to)), pattern, size, bytes);
    }
  }
  erase(to, bytes);
}

std::shared_ptr<KnownBytes::Pending> KnownBytes::promised(std::uint64_t address,
                                                          std::uint64_t bytes,
                                                          std::uint64_t& begin) {
  if (bytes == 0 || !inside(address, bytes) || !possible(address)) return nullptr;
  std::lock_guard guard(mutex_);
  auto it = stretch_at(address);
  if (it == map_.end() || it->second.end < address + bytes) return nullptr;
  begin = it->first;
  return it->second.pending;
}

bool KnownBytes::any(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || !inside(address, bytes)) return false;
  std::lock_guard guard(mutex_);
  return any_stretch(address, bytes);
}

bool KnownBytes::any_settled(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || !inside(address, bytes)) return false;
  std::unique_lock lock(mutex_);
  settle(lock, address, bytes);
  return any_stretch(address, bytes);
}

bool KnownBytes::any_stretch(std::uint64_t address, std::uint64_t bytes) const {
  auto it = map_.upper_bound(address);
  if (it != map_.begin() && std::prev(it)->second.end > address) --it;
  for (; it != map_.end() && it->first < address + bytes; ++it)
    if (it->second.supposed == 0) return true;
  return false;
}

const void* KnownBytes::known(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || !inside(address, bytes) || !possible(address)) return nullptr;
  std::unique_lock lock(mutex_);
  settle(lock, address, bytes);
  return covered(address, bytes) ? at(address) : nullptr;
}

}  // namespace maya::values
