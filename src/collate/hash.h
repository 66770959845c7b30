// 64-bit mixing for fingerprints of op streams.
#pragma once

#include <cstdint>
#include <string_view>

#include "maya/op.h"

namespace maya::collate {

inline std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  // One 64×64→128 multiply, folded (the mum of wyhash): a few cycles per record.
  unsigned __int128 p = static_cast<unsigned __int128>(h ^ 0x9e3779b97f4a7c15ull) *
                        (v ^ 0xe7037ed1a0b428dbull ^ (h << 1));
  return static_cast<std::uint64_t>(p) ^ static_cast<std::uint64_t>(p >> 64);
}

std::uint64_t hash_text(std::string_view text);

// A hash of all fields. The peer of a message is not included: it differs between ranks with
// identical work, and is compared through the class of the peer (see fold.h).
std::uint64_t hash_op(const Op& op);
// A hash of the kind and the name only: equal for the same code with other sizes.
std::uint64_t hash_op_shape(const Op& op);

}  // namespace maya::collate
