// PTX of the user's program: it is parsed for its kernels and executed one thread at a time.
#include <cstdint>
#include <string>
#include <string_view>

#include "decode/ptx.h"
#include "device/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  maya::device::image_bytes(text.c_str(), text.size() + 1);
  const maya::device::Image image{{text.begin(), text.end()}, true, 90};
  static std::uint64_t arguments[64]{};
  void* pointers[64];
  for (int i = 0; i < 64; ++i)
    arguments[i] = 0x1000u * static_cast<unsigned>(i), pointers[i] = &arguments[i];
  int kernels = 0;
  for (const auto& [name, code] : maya::device::kernels(image)) {
    if (++kernels > 4) break;
    auto program = maya::decode::ptx::parse(text, name);
    if (!program || program->parameters.size() > 64) continue;
    maya::decode::ptx::read_only_parameters(*program);
    maya::decode::Kernel kernel;
    kernel.mangled = name;
    kernel.ptx = text;
    maya::decode::Launch launch;
    launch.kernel = &kernel;
    launch.geometry.grid = {2, 1, 1}, launch.geometry.block = {32, 1, 1};
    launch.arguments = pointers;
    launch.extent = [](std::uint64_t) { return std::uint64_t{4096}; };
    launch.known = [](std::uint64_t, std::uint64_t) -> const void* { return nullptr; };
    maya::decode::ptx::count(*program, launch);
  }
  return 0;
}
