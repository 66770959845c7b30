#include "device/sass.h"

#include <cstring>

namespace maya::device {
namespace {

constexpr std::size_t instruction_bytes = 16;

// Low 12 bits of an instruction, as nvdisasm shows them for sm_70 to sm_120.
enum class Opcode : std::uint16_t {
  load_global = 0x981,
  store_global = 0x386,
  load_global_to_shared = 0xfae,
  load_local = 0x983,
  store_local = 0x387,
};

// Bytes of an access, by its field of three bits: 8 bits with and without a sign, 16 likewise, 32,
// 64, 128.
constexpr std::uint8_t widths[] = {1, 1, 2, 2, 4, 8, 16, 0};

}  // namespace

MemoryCode memory_code(std::string_view instructions) {
  MemoryCode code;
  for (; instructions.size() >= instruction_bytes; instructions.remove_prefix(instruction_bytes)) {
    std::uint64_t low, high;
    std::memcpy(&low, instructions.data(), 8), std::memcpy(&high, instructions.data() + 8, 8);
    const std::uint64_t bytes = widths[high >> 9 & 7];
    switch (static_cast<Opcode>(low & 0xfff)) {
      case Opcode::load_local:
      case Opcode::store_local:
        code.local_bytes += bytes;
        break;
      case Opcode::load_global:
      case Opcode::store_global:
      case Opcode::load_global_to_shared:
        code.global_bytes += bytes;
        break;
    }
  }
  return code;
}

}  // namespace maya::device
