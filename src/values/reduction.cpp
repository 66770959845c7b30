#include "values/reduction.h"

#include <algorithm>
#include <cstring>

namespace maya::values {
namespace {

template <class T>
void reduce_as(ReduceOp reduce, const std::vector<std::vector<char>>& contributions,
               std::uint64_t offset, void* to, std::uint64_t bytes) {
  auto* out = static_cast<T*>(to);
  for (std::uint64_t i = 0; i < bytes / sizeof(T); ++i) {
    T result{};
    for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
      T value;
      std::memcpy(&value, contributions[rank].data() + offset + i * sizeof(T), sizeof value);
      if (rank == 0)
        result = value;
      else if (reduce == ReduceOp::product)
        result = static_cast<T>(result * value);
      else if (reduce == ReduceOp::max)
        result = std::max(result, value);
      else if (reduce == ReduceOp::min)
        result = std::min(result, value);
      else
        result = static_cast<T>(result + value);
    }
    if (reduce == ReduceOp::average)
      result = static_cast<T>(result / static_cast<T>(contributions.size()));
    out[i] = result;
  }
}

}  // namespace

bool reduce_contributions(DType dtype, ReduceOp reduce,
                          const std::vector<std::vector<char>>& contributions, std::uint64_t offset,
                          void* to, std::uint64_t bytes) {
  switch (dtype) {
    case DType::i8:
      return reduce_as<std::int8_t>(reduce, contributions, offset, to, bytes), true;
    case DType::u8:
      return reduce_as<std::uint8_t>(reduce, contributions, offset, to, bytes), true;
    case DType::i32:
      return reduce_as<std::int32_t>(reduce, contributions, offset, to, bytes), true;
    case DType::i64:
      return reduce_as<std::int64_t>(reduce, contributions, offset, to, bytes), true;
    case DType::f32:
      return reduce_as<float>(reduce, contributions, offset, to, bytes), true;
    case DType::f64:
      return reduce_as<double>(reduce, contributions, offset, to, bytes), true;
    default:
      return false;
  }
}

}  // namespace maya::values
