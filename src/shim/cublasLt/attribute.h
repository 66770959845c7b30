// One attribute of a descriptor: where it is kept and how wide callers see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "abi/cublas.h"

namespace maya::shim::cublaslt {

struct Attribute {
  int id;
  std::size_t offset;
  std::size_t stored;   // bytes in our structure: 2, 4 or 8
  std::size_t visible;  // bytes in the interface: 1, 4 or 8
};

inline const Attribute* find(std::span<const Attribute> table, int id) {
  for (const Attribute& attribute : table)
    if (attribute.id == id) return &attribute;
  return nullptr;
}

// Documented: INVALID_VALUE when buf is null or sizeInBytes does not match the attribute.
inline abi::cublasStatus_t set(std::span<const Attribute> table, void* own, int id,
                               const void* from, std::size_t size) {
  const Attribute* attribute = find(table, id);
  if (!own || !attribute || !from || size != attribute->visible)
    return abi::CUBLAS_STATUS_INVALID_VALUE;
  std::int64_t value = 0;
  if (size == 1)
    value = *static_cast<const std::uint8_t*>(from);
  else if (size == 4) {
    std::int32_t narrow;
    std::memcpy(&narrow, from, 4);
    value = narrow;
  } else {
    std::memcpy(&value, from, 8);
  }
  std::memcpy(static_cast<char*>(own) + attribute->offset, &value, attribute->stored);
  return abi::CUBLAS_STATUS_SUCCESS;
}

// Documented: with sizeInBytes 0 only sizeWritten is filled in.
inline abi::cublasStatus_t get(std::span<const Attribute> table, const void* own, int id, void* to,
                               std::size_t size, std::size_t* written) {
  const Attribute* attribute = find(table, id);
  if (!own || !attribute || (size == 0 && !written) ||
      (size != 0 && (!to || size < attribute->visible)))
    return abi::CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = attribute->visible;
  if (size == 0) return abi::CUBLAS_STATUS_SUCCESS;
  const char* at = static_cast<const char*>(own) + attribute->offset;
  std::int64_t value = 0;
  if (attribute->stored == 2) {
    std::int16_t narrow;
    std::memcpy(&narrow, at, 2);
    value = narrow;
  } else {
    std::memcpy(&value, at, attribute->stored);
  }
  std::memcpy(to, &value, attribute->visible);
  return abi::CUBLAS_STATUS_SUCCESS;
}

}  // namespace maya::shim::cublaslt
