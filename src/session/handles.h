// Handles of the libraries (cublasHandle_t, cudnnTensorDescriptor_t, …): one table for all of them.
//
// A handle is the address of an entry of this table, and what the program passes is looked up,
// never dereferenced: it is in the table, on an entry, alive and of the kind that is asked for, or
// it is no handle. Made-up, destroyed and foreign handles are thus error codes. A lookup costs a
// comparison and two loads.
//
// Streams, events, graphs and modules have tables of their own (device/slab.h).
#pragma once

#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "session/session.h"

namespace maya::session {

using HandleKind = std::uint64_t;

// Libraries that are loaded apart agree on a kind by its name.
constexpr HandleKind handle_kind(std::string_view name) {
  HandleKind hash = 0xcbf29ce484222325ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash | 1;  // 0 is a free entry
}

// Null when the table is full.
MAYA_EXPORT void* enter_handle(HandleKind kind, void* object);
// The object, or null if this is no living handle of that kind.
MAYA_EXPORT void* object_of(HandleKind kind, const void* handle);
// Takes the handle out of the table and returns its object: to one caller only, null to the others.
MAYA_EXPORT void* remove_handle(HandleKind kind, const void* handle);

// The same by type: T names its kind, `static constexpr HandleKind kind = handle_kind("…")`.
template <class T, class... Arguments>
void* make_handle(Arguments&&... arguments) {
  T* object = new (std::nothrow) T{std::forward<Arguments>(arguments)...};
  if (object == nullptr) return nullptr;
  void* handle = enter_handle(T::kind, object);
  if (handle == nullptr) delete object;
  return handle;
}
template <class T>
T* find_handle(const void* handle) {
  return static_cast<T*>(object_of(T::kind, handle));
}
template <class T>
bool drop_handle(const void* handle) {
  T* object = static_cast<T*>(remove_handle(T::kind, handle));
  delete object;
  return object != nullptr;
}

}  // namespace maya::session
