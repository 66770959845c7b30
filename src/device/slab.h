// Objects behind the handles that a program holds.
//
// A handle is the object's address. Addresses come from one reserved range per kind of object, so
// that any value a program passes can be checked without touching it: inside the range, on a slot,
// alive. Use of a destroyed or made-up handle is thus an error code, never a crash.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace maya::device {

template <class T, std::size_t Capacity>
class Slab {
 public:
  Slab() {
    void* map = mmap(nullptr, Capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    slots_ = map == MAP_FAILED ? nullptr : static_cast<Slot*>(map);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Null when full or out of address space.
  template <class... Arguments>
  T* create(Arguments&&... arguments) {
    std::lock_guard guard(mutex_);
    Slot* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next;
    } else if (slots_ != nullptr && used_ < Capacity) {
      slot = &slots_[used_++];
    } else {
      return nullptr;
    }
    T* object = new (slot->storage) T(std::forward<Arguments>(arguments)...);
    slot->live.store(true, std::memory_order_release);
    return object;
  }

  bool destroy(void* handle) {
    std::lock_guard guard(mutex_);
    T* object = find(handle);
    if (object == nullptr) return false;
    Slot* slot = slot_of(handle);
    slot->live.store(false, std::memory_order_release);
    object->~T();
    slot->next = free_;
    free_ = slot;
    return true;
  }

  T* find(const void* handle) const {
    auto offset =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots_);
    if (offset >= Capacity * sizeof(Slot) || offset % sizeof(Slot) != 0) return nullptr;
    const Slot* slot = slot_of(handle);
    if (!slot->live.load(std::memory_order_acquire)) return nullptr;
    return const_cast<T*>(reinterpret_cast<const T*>(slot->storage));
  }

  template <class F>
  void each(F&& f) {
    std::lock_guard guard(mutex_);
    for (std::size_t i = 0; i < used_; ++i)
      if (slots_[i].live.load(std::memory_order_acquire))
        f(*reinterpret_cast<T*>(slots_[i].storage));
  }

 private:
  struct Slot {
    alignas(T) unsigned char storage[sizeof(T)];  // first: the object's address is the slot's
    Slot* next;
    std::atomic<bool> live;
  };
  static Slot* slot_of(const void* handle) {
    return const_cast<Slot*>(static_cast<const Slot*>(handle));
  }

  Slot* slots_ = nullptr;
  Slot* free_ = nullptr;
  std::size_t used_ = 0;
  std::mutex mutex_;
};

}  // namespace maya::device
