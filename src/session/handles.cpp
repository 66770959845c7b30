#include "session/handles.h"

#include <sys/mman.h>

#include <atomic>
#include <mutex>

namespace maya::session {
namespace {

struct Entry {
  std::atomic<HandleKind> kind;  // 0: free
  std::atomic<void*> object;
};
static_assert(sizeof(Entry) == 16);

constexpr std::size_t capacity = 1 << 22;

// Reserved, not allocated: pages that no handle was ever on cost nothing.
Entry* entries() {
  static Entry* const table = [] {
    void* map = mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? nullptr : static_cast<Entry*>(map);
  }();
  return table;
}

std::mutex& mutex() {
  static auto* one = new std::mutex;
  return *one;
}
std::size_t used = 0;
Entry* free_list = nullptr;  // through `object`

Entry* entry_of(const void* handle) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(entries());
  if (entries() == nullptr || offset >= capacity * sizeof(Entry) || offset % sizeof(Entry) != 0)
    return nullptr;
  return entries() + offset / sizeof(Entry);
}

}  // namespace

void* enter_handle(HandleKind kind, void* object) {
  std::lock_guard guard(mutex());
  Entry* entry = free_list;
  if (entry != nullptr) {
    free_list = static_cast<Entry*>(entry->object.load(std::memory_order_relaxed));
  } else if (entries() != nullptr && used < capacity) {
    entry = entries() + used++;
  } else {
    return nullptr;
  }
  entry->object.store(object, std::memory_order_relaxed);
  entry->kind.store(kind, std::memory_order_release);
  return entry;
}

void* object_of(HandleKind kind, const void* handle) {
  const Entry* entry = entry_of(handle);
  if (entry == nullptr || entry->kind.load(std::memory_order_acquire) != kind) return nullptr;
  return entry->object.load(std::memory_order_relaxed);
}

void* remove_handle(HandleKind kind, const void* handle) {
  Entry* entry = entry_of(handle);
  if (entry == nullptr || !entry->kind.compare_exchange_strong(kind, 0)) return nullptr;
  std::lock_guard guard(mutex());
  void* object = entry->object.exchange(free_list);
  free_list = entry;
  return object;
}

}  // namespace maya::session
