// Kernels that only move bytes: how decoders of libraries say so.
#pragma once

#include "decode/rule.h"

namespace maya::decode {

// Positions of the parameters of this type, in order, from the first one behind `from` on.
inline std::vector<std::size_t> positions(const Name& name, std::string_view type,
                                          std::size_t from = 0) {
  std::vector<std::size_t> found;
  for (std::size_t i = from; i < name.parameters.size(); ++i)
    if (name.parameters[i] == type) found.push_back(i);
  return found;
}

inline Pointwise traffic(std::int64_t elements, std::int64_t read, std::int64_t written,
                         DType dtype, int flops) {
  Pointwise work;
  work.elements = elements;
  work.bytes_read = read;
  work.bytes_written = written;
  work.dtype = dtype;
  work.flops_per_element = flops;
  return work;
}

}  // namespace maya::decode
