// Addresses of host memory that a program passes: whether they are anybody's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "session/session.h"

namespace maya::session {

// Whether all of this range is mapped. One system call.
MAYA_EXPORT bool mapped(const void* address, std::size_t bytes);

// The same for a few bytes that a program passes with every call (alpha and beta of a product): the
// page it was last seen on is remembered.
inline bool mapped_scalar(const void* address, std::size_t bytes) {
  static thread_local std::uintptr_t seen = 0;
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) >> 12;
  if (page == seen && (reinterpret_cast<std::uintptr_t>(address) + bytes - 1) >> 12 == page)
    return true;
  if (!mapped(address, bytes)) return false;
  seen = page;
  return true;
}

// A list of texts, as compilers take their options: every one of them is somebody's.
inline bool mapped_texts(const char* const* texts, std::size_t count) {
  constexpr std::size_t most = 4096;
  if (count == 0) return true;
  if (count > most || !mapped(texts, count * sizeof *texts)) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (texts[i] != nullptr && !mapped(texts[i], 1)) return false;
  return true;
}

// How many bytes from here on are mapped, up to `most`.
MAYA_EXPORT std::size_t mapped_from(const void* address, std::size_t most);

}  // namespace maya::session
