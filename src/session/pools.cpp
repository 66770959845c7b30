// Memory in stream order, and the pools it comes from.
#include <algorithm>

#include "abi/cudart_memory.h"
#include "session/calls.h"

namespace maya::session {
namespace {

using namespace abi;

Pool* pool_of(void* handle) { return state().pools.find(handle); }

int allocate_from(void** address, std::uint64_t bytes, Pool* pool, void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (address == nullptr) return code::invalid_value;
  State& s = state();
  if (bytes == 0) {
    *address = nullptr;
    return code::success;
  }
  if (pool == nullptr) pool = s.current_pools[static_cast<std::size_t>(stream->device)];
  auto allocation = s.memory.allocate(pool->device, bytes, MemoryKind::pool);
  if (!allocation) return refuse_memory(bytes, MemoryKind::pool);
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  if (stream->capture != nullptr) {
    Node* node = capture_node(*stream, NodeType::mem_alloc, {});
    if (node != nullptr) node->address = allocation->address, node->bytes = bytes;
  } else {
    record_allocation(trace::Kind::allocate, *allocation, stream->id, trace::Flag::async);
  }
  *address = reinterpret_cast<void*>(allocation->address);
  return code::success;
}

}  // namespace

int allocate_async(void** address, std::uint64_t bytes, void* stream) {
  return allocate_from(address, bytes, nullptr, stream);
}

int allocate_from_pool(void** address, std::uint64_t bytes, void* handle, void* stream) {
  Pool* pool = pool_of(handle);
  return pool == nullptr ? code::invalid_value : allocate_from(address, bytes, pool, stream);
}

int release_async(void* address, void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (address == nullptr) return code::invalid_value;
  State& s = state();
  if (stream->capture != nullptr) {
    Node* node = capture_node(*stream, NodeType::mem_free, {});
    if (node != nullptr) node->address = reinterpret_cast<std::uint64_t>(address);
    return code::success;  // the memory belongs to the graph
  }
  auto allocation = s.memory.release(reinterpret_cast<std::uint64_t>(address));
  if (!allocation) return code::invalid_value;
  drop_values(*allocation);
  Pool* pool = s.default_pools[static_cast<std::size_t>(allocation->device)];
  pool->used -= std::min(pool->used, allocation->bytes);
  record_allocation(trace::Kind::release, *allocation, stream->id, trace::Flag::async);
  return code::success;
}

int pool_create(void*& handle, int device) {
  if (int error = touch()) return error;
  Pool* pool = state().pools.create();
  if (pool == nullptr) return code::out_of_memory;
  pool->device = device;
  handle = pool;
  return code::success;
}

int pool_destroy(void* handle) {
  const Pool* pool = pool_of(handle);
  if (pool == nullptr || pool->is_default) return code::invalid_value;
  state().pools.destroy(handle);
  return code::success;
}

bool valid_pool(void* handle) { return pool_of(handle) != nullptr; }

int pool_of_device(int device, bool is_default, void*& pool) {
  if (int error = check_device(device)) return error;
  const State& s = state();
  pool = (is_default ? s.default_pools : s.current_pools)[static_cast<std::size_t>(device)];
  return code::success;
}

int use_pool(int device, void* handle) {
  Pool* pool = pool_of(handle);
  if (pool == nullptr) return code::invalid_value;
  if (int error = check_device(device)) return error;
  state().current_pools[static_cast<std::size_t>(device)] = pool;
  return code::success;
}

int pool_attribute(void* handle, int attribute, void* value) {
  const Pool* pool = pool_of(handle);
  if (pool == nullptr || value == nullptr) return code::invalid_value;
  auto& number = *static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = 1;
      return code::success;
    case cudaMemPoolAttrReleaseThreshold:
      number = pool->release_threshold;
      return code::success;
    case cudaMemPoolAttrReservedMemCurrent:
      number = pool->reserved;
      return code::success;
    case cudaMemPoolAttrReservedMemHigh:
      number = pool->reserved_high;
      return code::success;
    case cudaMemPoolAttrUsedMemCurrent:
      number = pool->used;
      return code::success;
    case cudaMemPoolAttrUsedMemHigh:
      number = pool->used_high;
      return code::success;
    default:
      return code::invalid_value;
  }
}

int set_pool_attribute(void* handle, int attribute, const void* value) {
  Pool* pool = pool_of(handle);
  if (pool == nullptr || value == nullptr) return code::invalid_value;
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->release_threshold = *static_cast<const std::uint64_t*>(value);
  if (attribute == cudaMemPoolAttrReservedMemHigh) pool->reserved_high = pool->reserved;
  if (attribute == cudaMemPoolAttrUsedMemHigh) pool->used_high = pool->used;
  return code::success;
}

int pool_trim(void* handle, std::uint64_t keep) {
  Pool* pool = pool_of(handle);
  if (pool == nullptr) return code::invalid_value;
  pool->reserved = std::max(pool->used, std::min(pool->reserved, keep));
  return code::success;
}

}  // namespace maya::session
