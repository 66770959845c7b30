// The memory of the emulated GPUs: addresses, sizes and limits, no backing store.
//
// Each device owns a reserved range of addresses several times its capacity, because a real GPU
// maps pages and does not suffer from fragmented addresses either. What is handed out is accounted
// in the driver's granularity of 2 MiB; small requests share such a page. The range is mapped
// without reserve, so that known values (src/values) can live at their own addresses; untouched
// pages cost nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "maya/trace.h"

namespace maya::device {

using trace::MemoryKind;

struct Allocation {
  std::uint64_t address{}, bytes{};
  MemoryKind kind{};
  std::uint32_t id{};
  int device{};
  bool elsewhere{};  // another process's or another device's memory under an address of ours
};

class Memory {
 public:
  static constexpr std::uint64_t page = std::uint64_t{2} << 20;

  // `total`: the memory of a device, of which a context takes some; `beyond`: how much more than
  // that is handed out; `libraries`: what of the context is taken only when libraries begin to work.
  Memory(int devices, std::uint64_t total, std::uint64_t context, std::uint64_t beyond = 0,
         std::uint64_t libraries = 0);

  // A library has work for the device. Only the first time counts.
  void load_libraries(int device);

  // Null when the device has no room left (CUDA error 2).
  std::optional<Allocation> allocate(int device, std::uint64_t bytes, MemoryKind kind);
  // The allocation that began at this address.
  std::optional<Allocation> release(std::uint64_t address);
  std::optional<Allocation> find(std::uint64_t address) const;  // that contains it
  std::uint64_t extent(std::uint64_t address) const;  // bytes from there to its end; 0: none

  // Virtual memory management: addresses and physical memory apart.
  std::uint64_t reserve(int device, std::uint64_t bytes, std::uint64_t alignment);
  bool unreserve(std::uint64_t address, std::uint64_t bytes);
  bool take_physical(int device, std::uint64_t bytes);
  void give_physical(int device, std::uint64_t bytes);
  std::optional<Allocation> map(std::uint64_t address, std::uint64_t bytes, bool elsewhere);
  std::optional<Allocation> unmap(std::uint64_t address);
  // Another process's memory under an address of ours (IPC); not accounted here.
  std::uint64_t alias(int device, std::uint64_t bytes);

  std::uint64_t total(int device) const { return devices_[static_cast<std::size_t>(device)].total; }
  std::uint64_t used(int device) const;
  std::uint64_t free_bytes(int device) const;
  std::uint64_t peak(int device) const;

  bool owns(std::uint64_t address) const { return address - base_ < span_; }
  int device_of(std::uint64_t address) const {
    return static_cast<int>((address - base_) / stride_);
  }
  // Whether it takes a link between GPUs to get from one address to the other.
  bool apart(std::uint64_t a, std::uint64_t b) const;
  std::uint64_t base() const { return base_; }
  std::uint64_t span() const { return span_; }

 private:
  struct Device {
    std::uint64_t total{}, limit{}, context{}, libraries{}, large{}, small{}, peak{};
    std::map<std::uint64_t, std::uint64_t> free;  // address → bytes, coalesced
    std::uint64_t used() const { return context + large + (small + page - 1) / page * page; }
  };
  std::uint64_t take_addresses(Device& device, std::uint64_t bytes, std::uint64_t alignment);
  void give_addresses(Device& device, std::uint64_t address, std::uint64_t bytes);
  bool charge(Device& device, std::uint64_t bytes);
  void discharge(Device& device, std::uint64_t bytes);
  Allocation& enter(std::uint64_t address, std::uint64_t bytes, MemoryKind kind, int device);

  mutable std::mutex mutex_;
  std::vector<Device> devices_;
  std::map<std::uint64_t, Allocation> allocations_;  // by address
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::uint64_t base_{}, span_{}, stride_{};
  std::uint32_t next_id_ = 1;
};

}  // namespace maya::device
