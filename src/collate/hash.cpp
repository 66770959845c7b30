#include "collate/hash.h"

#include <cstring>
#include <type_traits>

namespace maya::collate {
namespace {

template <class T>
std::uint64_t bits_of(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    std::uint64_t bits{};
    double wide = value;
    std::memcpy(&bits, &wide, sizeof bits);
    return bits;
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

}  // namespace

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = text.size();
  while (text.size() >= 8) {
    std::uint64_t word{};
    std::memcpy(&word, text.data(), 8);
    h = mix(h, word);
    text.remove_prefix(8);
  }
  std::uint64_t word{};
  std::memcpy(&word, text.data(), text.size());
  return mix(h, word);
}

std::uint64_t hash_op_shape(const Op& op) { return mix(op.work.index(), hash_text(op.name)); }

std::uint64_t hash_op(const Op& op) {
  std::uint64_t h = hash_op_shape(op);
  if (const auto* message = std::get_if<PointToPoint>(&op.work)) {
    h = mix(mix(h, message->send), static_cast<std::uint64_t>(message->bytes));
  } else {
    std::visit(
        [&](const auto& work) {
          work.each(work, [&](std::string_view, const auto& field) { h = mix(h, bits_of(field)); });
        },
        op.work);
  }
  const Geometry& g = op.geometry;
  h = mix(h, g.threads());
  return mix(h, g.blocks() ^ (std::uint64_t{g.shared_bytes} << 32));
}

}  // namespace maya::collate
