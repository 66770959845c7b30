// Fat binaries of the user's program. The sizes before the entries are trusted, because the program
// itself uses them; everything inside is not.
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<char> bytes(16 + size + 1);
  std::uint32_t magic = 0xBA55ED50;
  std::uint16_t version = 1, header = 16;
  std::uint64_t total = size;
  std::memcpy(bytes.data(), &magic, 4), std::memcpy(bytes.data() + 4, &version, 2),
      std::memcpy(bytes.data() + 6, &header, 2);
  std::memcpy(bytes.data() + 8, &total, 8);
  if (size > 0) std::memcpy(bytes.data() + 16, data, size);
  for (const auto& image : maya::device::unpack(bytes.data(), 90).images) {
    maya::device::kernels(image);
    maya::device::variables(image);
  }
  // A bare ELF image of exactly these bytes.
  maya::device::Image image{
      {reinterpret_cast<const char*>(data), reinterpret_cast<const char*>(data) + size}, false, 90};
  maya::device::kernels(image);
  maya::device::variables(image);
  return 0;
}
