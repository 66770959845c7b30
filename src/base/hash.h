// FNV-1a: for names and identities, where the hash is part of nothing that is stored for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace maya::base {

inline constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325ULL;

constexpr std::uint64_t fnv(std::string_view bytes, std::uint64_t hash = fnv_offset) {
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Of a few bytes that identify something: the high half is mixed into the low one.
inline std::uint64_t identity(const void* data, std::size_t bytes) {
  const std::uint64_t hash = fnv(std::string_view(static_cast<const char*>(data), bytes));
  return hash ^ (hash >> 31);
}

}  // namespace maya::base
