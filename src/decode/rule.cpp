#include "decode/rule.h"

namespace maya::decode {

std::size_t RuleDecoder::key(const Launch& launch, std::byte* out, std::size_t capacity) const {
  std::size_t used = 0;
  if (!launch.arguments) return 0;
  for (const KeyPart& part : parts_) {
    const void* source = launch.arguments[part.parameter];
    if (!source || used + part.size > capacity) break;
    std::memcpy(out + used, static_cast<const std::byte*>(source) + part.offset, part.size);
    used += part.size;
  }
  return used;
}

Decoded RuleDecoder::decode(const Launch& launch) const {
  Decoded out;
  out.op.geometry = launch.geometry;
  try {
    body_(Arguments(launch), out);
  } catch (...) {  // out of memory at worst: the training process must not notice
    out.recognised = false;
  }
  return out;
}

std::vector<KeyPart> whole(const Kernel& kernel, std::initializer_list<int> indices) {
  std::vector<KeyPart> parts;
  for (int i : indices) {
    if (i < 0 || static_cast<std::size_t>(i) >= kernel.parameter_sizes.size()) continue;
    parts.push_back({static_cast<std::uint8_t>(i), 0, kernel.parameter_sizes[i]});
  }
  return parts;
}

std::vector<KeyPart> scalars(const Kernel& kernel, const Name& name) {
  std::vector<KeyPart> parts;
  for (std::size_t i = 0; i < kernel.parameter_sizes.size() && i < 255; ++i) {
    bool pointer = i < name.parameters.size() ? is_pointer(name.parameters[i])
                                              : kernel.parameter_sizes[i] == 8;
    if (pointer || kernel.parameter_sizes[i] > 64) continue;
    parts.push_back({static_cast<std::uint8_t>(i), 0, kernel.parameter_sizes[i]});
  }
  return parts;
}

Made make(std::vector<KeyPart> parts, Body body, bool values) {
  return std::make_unique<RuleDecoder>(std::move(parts), std::move(body), values);
}

void read(Decoded& out, std::uint64_t address, std::int64_t bytes) {
  if (address && bytes > 0)
    out.accesses.push_back({address, static_cast<std::uint64_t>(bytes), false});
}

void write(Decoded& out, std::uint64_t address, std::int64_t bytes) {
  if (address && bytes > 0)
    out.accesses.push_back({address, static_cast<std::uint64_t>(bytes), true});
}

}  // namespace maya::decode
