#include <zstd.h>

#include <cstring>

#include "mutate.h"

namespace maya::fuzz {
namespace {

// One entry of a fat binary: 64 bytes of header, then the payload.
std::string entry(std::uint16_t kind, std::uint32_t capability, const std::string& payload,
                  std::uint64_t flags) {
  std::string stored = payload;
  if (flags & 0x8000) {
    stored.resize(ZSTD_compressBound(payload.size()));
    stored.resize(ZSTD_compress(stored.data(), stored.size(), payload.data(), payload.size(), 1));
  }
  auto packed = static_cast<std::uint32_t>(stored.size());
  stored.resize((stored.size() + 7) / 8 * 8);
  std::string header(64, '\0');
  auto put = [&](std::size_t at, auto value) {
    std::memcpy(header.data() + at, &value, sizeof value);
  };
  put(0, kind), put(2, std::uint16_t{0x101}), put(4, std::uint32_t{64});
  put(8, std::uint64_t{stored.size()}), put(16, packed), put(28, capability), put(40, flags);
  put(56, std::uint64_t{payload.size()});
  return header + stored;
}

// An ELF of 64 bits for CUDA (machine 190) with a table of two sections.
std::string elf() {
  std::string bytes(64 + 3 * 64, '\0');
  auto put = [&](std::size_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  std::memcpy(bytes.data(), "\177ELF\2\1\1", 7);
  put(16, std::uint16_t{2}), put(18, std::uint16_t{190}), put(20, std::uint32_t{1});
  put(40, std::uint64_t{64}), put(52, std::uint16_t{64}), put(58, std::uint16_t{64});
  put(60, std::uint16_t{3}), put(62, std::uint16_t{1});
  const std::string names = std::string("\0.shstrtab\0.nv.info.k\0.text.k\0", 30);
  put(64 + 64 + 4, std::uint32_t{3}), put(64 + 64 + 24, std::uint64_t{bytes.size()});
  put(64 + 64 + 32, std::uint64_t{names.size()});
  put(64 + 128 + 0, std::uint32_t{11}), put(64 + 128 + 24, std::uint64_t{64});
  put(64 + 128 + 32, std::uint64_t{64});
  return bytes + names;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string ptx =
      ".version 8.0\n.target sm_80\n.visible .global .align 4 .b8 table[16];\n.visible .entry "
      "scale(\n.param .u64 a,\n.param .f32 b,\n.param .align 4 .b8 c[12]\n)\n{ ret; }\n";
  return {entry(1, 80, ptx, 0x11),
          entry(1, 90, ptx, 0x8011),
          entry(2, 90, elf(), 0x11),
          entry(2, 90, elf(), 0x8011) + entry(1, 80, ptx, 0x11),
          elf(),
          ptx};
}

}  // namespace maya::fuzz
