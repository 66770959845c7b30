// Machine code of Volta and later, as far as it tells what a kernel does to memory: PTX has as many
// registers as it likes, and only the assembler knows what does not fit and goes to local memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace maya::device {

// Bytes that a thread's loads and stores move, each instruction of the code counted once.
struct MemoryCode {
  std::uint64_t local_bytes{};   // registers that are spilled, arrays with computed indices
  std::uint64_t global_bytes{};  // also on their way to shared memory
};

// Of a section of instructions of 16 bytes each.
MemoryCode memory_code(std::string_view instructions);

}  // namespace maya::device
