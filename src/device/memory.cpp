#include "device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace maya::device {
namespace {

constexpr std::uint64_t small_limit = std::uint64_t{1} << 20;  // larger requests take whole pages
constexpr std::uint64_t small_grain = 512;

std::uint64_t round_up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }
bool is_small(std::uint64_t bytes) { return bytes <= small_limit; }
std::uint64_t charged(std::uint64_t bytes) {
  return is_small(bytes) ? round_up(std::max<std::uint64_t>(bytes, 1), small_grain)
                         : round_up(bytes, Memory::page);
}

}  // namespace

Memory::Memory(int devices, std::uint64_t total, std::uint64_t context, std::uint64_t beyond,
               std::uint64_t libraries) {
  libraries = std::min(libraries, context);
  stride_ = std::bit_ceil(std::max<std::uint64_t>(total, page)) * 8;
  span_ = stride_ * static_cast<std::uint64_t>(devices);
  void* map = mmap(nullptr, span_ + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    span_ = 0;
    base_ = page;
  } else {
    // Neither core dumps nor fork need the emulated memory.
    madvise(map, span_ + page, MADV_DONTDUMP);
    base_ = round_up(reinterpret_cast<std::uintptr_t>(map), page);
  }
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.total = total;
    device.limit = total + std::min(beyond, stride_ - page - total);
    device.context = device.peak = context - libraries;
    device.libraries = libraries;
    if (span_ != 0) device.free[base_ + stride_ * static_cast<std::uint64_t>(i)] = stride_ - page;
    devices_.push_back(std::move(device));
  }
}

void Memory::load_libraries(int device) {
  std::lock_guard guard(mutex_);
  Device& d = devices_[static_cast<std::size_t>(device)];
  d.context += std::exchange(d.libraries, 0);
  d.peak = std::max(d.peak, d.used());
}

std::uint64_t Memory::take_addresses(Device& device, std::uint64_t bytes, std::uint64_t alignment) {
  for (auto it = device.free.begin(); it != device.free.end(); ++it) {
    std::uint64_t start = round_up(it->first, alignment);
    std::uint64_t end = it->first + it->second;
    if (start >= end || end - start < bytes) continue;
    std::uint64_t before = start - it->first;
    if (before > 0)
      it->second = before;
    else
      device.free.erase(it);
    if (start + bytes < end) device.free[start + bytes] = end - start - bytes;
    return start;
  }
  return 0;
}

void Memory::give_addresses(Device& device, std::uint64_t address, std::uint64_t bytes) {
  auto [it, inserted] = device.free.emplace(address, bytes);
  if (!inserted) return;
  if (auto next = std::next(it); next != device.free.end() && address + it->second == next->first) {
    it->second += next->second;
    device.free.erase(next);
  }
  if (it != device.free.begin()) {
    auto previous = std::prev(it);
    if (previous->first + previous->second == address) {
      previous->second += it->second;
      device.free.erase(it);
    }
  }
}

bool Memory::charge(Device& device, std::uint64_t bytes) {
  auto& account = is_small(bytes) ? device.small : device.large;
  account += charged(bytes);
  if (device.used() > device.limit) {
    account -= charged(bytes);
    return false;
  }
  device.peak = std::max(device.peak, device.used());
  return true;
}

void Memory::discharge(Device& device, std::uint64_t bytes) {
  (is_small(bytes) ? device.small : device.large) -= charged(bytes);
}

Allocation& Memory::enter(std::uint64_t address, std::uint64_t bytes, MemoryKind kind, int device) {
  return allocations_[address] = Allocation{address, bytes, kind, next_id_++, device};
}

std::optional<Allocation> Memory::allocate(int device, std::uint64_t bytes, MemoryKind kind) {
  std::lock_guard guard(mutex_);
  Device& d = devices_[static_cast<std::size_t>(device)];
  if (bytes > d.limit || !charge(d, bytes)) return std::nullopt;
  std::uint64_t alignment = is_small(bytes) ? small_grain : page;
  std::uint64_t address = take_addresses(d, charged(bytes), alignment);
  if (address == 0) {
    discharge(d, bytes);
    return std::nullopt;
  }
  return enter(address, bytes, kind, device);
}

std::optional<Allocation> Memory::release(std::uint64_t address) {
  std::lock_guard guard(mutex_);
  auto it = allocations_.find(address);
  if (it == allocations_.end() || it->second.kind == MemoryKind::mapped) return std::nullopt;
  Allocation allocation = it->second;
  allocations_.erase(it);
  Device& d = devices_[static_cast<std::size_t>(allocation.device)];
  if (allocation.kind != MemoryKind::context) discharge(d, allocation.bytes);
  give_addresses(d, address, charged(allocation.bytes));
  return allocation;
}

std::optional<Allocation> Memory::find(std::uint64_t address) const {
  std::lock_guard guard(mutex_);
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return std::nullopt;
  --it;
  if (address - it->first >= std::max<std::uint64_t>(it->second.bytes, 1)) return std::nullopt;
  return it->second;
}

std::uint64_t Memory::extent(std::uint64_t address) const {
  if (!owns(address)) return 0;
  auto allocation = find(address);
  if (!allocation) return 0;
  std::uint64_t end = allocation->address + allocation->bytes;
  if (allocation->kind == MemoryKind::mapped) {
    // Mappings side by side are one stretch to whoever uses them: expandable segments are many of
    // them.
    std::lock_guard guard(mutex_);
    for (auto it = allocations_.find(end);
         it != allocations_.end() && it->second.kind == MemoryKind::mapped;
         it = allocations_.find(end)) {
      end += it->second.bytes;
    }
  }
  return end - address;
}

std::uint64_t Memory::reserve(int device, std::uint64_t bytes, std::uint64_t alignment) {
  std::lock_guard guard(mutex_);
  std::uint64_t size = round_up(bytes, page);
  std::uint64_t address =
      take_addresses(devices_[static_cast<std::size_t>(device)], size, std::max(alignment, page));
  if (address != 0) reservations_[address] = size;
  return address;
}

bool Memory::unreserve(std::uint64_t address, std::uint64_t bytes) {
  std::lock_guard guard(mutex_);
  auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second != round_up(bytes, page)) return false;
  give_addresses(devices_[static_cast<std::size_t>(device_of(address))], address, it->second);
  reservations_.erase(it);
  return true;
}

bool Memory::take_physical(int device, std::uint64_t bytes) {
  std::lock_guard guard(mutex_);
  Device& d = devices_[static_cast<std::size_t>(device)];
  std::uint64_t size = round_up(bytes, page);
  if (d.used() + size > d.limit) return false;
  d.large += size;
  d.peak = std::max(d.peak, d.used());
  return true;
}

void Memory::give_physical(int device, std::uint64_t bytes) {
  std::lock_guard guard(mutex_);
  devices_[static_cast<std::size_t>(device)].large -= round_up(bytes, page);
}

std::optional<Allocation> Memory::map(std::uint64_t address, std::uint64_t bytes, bool elsewhere) {
  std::lock_guard guard(mutex_);
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return std::nullopt;
  --it;
  if (address + bytes > it->first + it->second) return std::nullopt;
  auto next = allocations_.lower_bound(address);
  if (next != allocations_.end() && next->first < address + bytes) return std::nullopt;
  if (next != allocations_.begin()) {
    const Allocation& before = std::prev(next)->second;
    if (before.address + before.bytes > address) return std::nullopt;
  }
  Allocation& made = enter(address, bytes, MemoryKind::mapped, device_of(address));
  made.elsewhere = elsewhere;
  return made;
}

bool Memory::apart(std::uint64_t a, std::uint64_t b) const {
  if (device_of(a) != device_of(b)) return true;
  const auto first = find(a), second = find(b);
  return (first && first->elsewhere) || (second && second->elsewhere);
}

std::optional<Allocation> Memory::unmap(std::uint64_t address) {
  std::lock_guard guard(mutex_);
  auto it = allocations_.find(address);
  if (it == allocations_.end() || it->second.kind != MemoryKind::mapped) return std::nullopt;
  Allocation allocation = it->second;
  allocations_.erase(it);
  return allocation;
}

std::uint64_t Memory::alias(int device, std::uint64_t bytes) {
  std::lock_guard guard(mutex_);
  std::uint64_t address =
      take_addresses(devices_[static_cast<std::size_t>(device)], charged(bytes), page);
  if (address != 0) enter(address, bytes, MemoryKind::context, device).elsewhere = true;
  return address;
}

std::uint64_t Memory::used(int device) const {
  std::lock_guard guard(mutex_);
  return devices_[static_cast<std::size_t>(device)].used();
}

std::uint64_t Memory::free_bytes(int device) const {
  std::lock_guard guard(mutex_);
  const Device& d = devices_[static_cast<std::size_t>(device)];
  return d.total - std::min(d.total, d.used());
}

std::uint64_t Memory::peak(int device) const {
  std::lock_guard guard(mutex_);
  return devices_[static_cast<std::size_t>(device)].peak;
}

}  // namespace maya::device
