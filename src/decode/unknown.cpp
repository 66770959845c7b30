// Kernels nobody knows: what the launch gives away. Pointer arguments are found by asking whether a
// value is a device address, and the traffic is guessed from the threads and the allocations behind
// them.
#include <algorithm>

#include "decode/rule.h"

namespace maya::decode {
namespace {

class Unknown : public Decoder {
 public:
  std::vector<KeyPart> parts;

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    // Scalars only; a 64-bit argument that is a device address says nothing about the size of the
    // work.
    Arguments a(launch);
    std::size_t used = 0;
    for (const KeyPart& part : parts) {
      const std::byte* p = a.raw(part.parameter, part.offset, part.size);
      if (!p || used + part.size > capacity) break;
      if (part.size == 8 && launch.extent) {
        std::uint64_t word = 0;
        std::memcpy(&word, p, 8);
        if (word > 0xffff && launch.extent(word)) continue;
      }
      std::memcpy(out + used, p, part.size);
      used += part.size;
    }
    return used;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    d.recognised = false;
    OtherKernel work;
    // A thread of a typical kernel moves a few 4-byte words per operand; no more than there is.
    std::uint64_t per_pointer = std::max<std::uint64_t>(launch.geometry.threads(), 1) * 4 * 4;
    if (launch.extent) {
      for (std::size_t i = 0; i < launch.kernel->parameter_sizes.size(); ++i) {
        for (std::size_t at = 0; at + 8 <= std::min<std::size_t>(a.size(i), 4096); at += 8) {
          std::uint64_t address = a.pointer(i, at);
          std::uint64_t extent = address > 0xffff ? launch.extent(address) : 0;
          if (!extent) continue;
          ++work.pointers;
          work.bytes_touched += static_cast<std::int64_t>(std::min(extent, per_pointer));
        }
      }
    }
    d.op.work = work;
    return d;
  }
};

}  // namespace

Made prepare_unknown(const Kernel& kernel, const Name&) {
  auto d = std::make_unique<Unknown>();
  for (std::size_t i = 0; i < kernel.parameter_sizes.size() && i < 255; ++i) {
    std::uint16_t size = kernel.parameter_sizes[i];
    for (std::uint16_t at = 0; at < size && at < 512; at += 8)
      d->parts.push_back({static_cast<std::uint8_t>(i), at,
                          static_cast<std::uint16_t>(std::min<int>(8, size - at))});
  }
  return d;
}

}  // namespace maya::decode
