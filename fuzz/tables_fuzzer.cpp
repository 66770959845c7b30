// Measured tables that users may exchange: learned models of kernels (.forest) and measured curves
// of collectives (measured.csv).
#include <cmath>
#include <cstdint>
#include <string_view>

#include "estimate/learned_model.h"
#include "network/measured.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto models = maya::estimate::LearnedModels::parse(text, "fuzz.forest");
  if (!models && models.error().message.empty()) __builtin_trap();
  auto measured = maya::network::Measured::parse(text, "h100-sxm", "fuzz.csv");
  if (!measured) {
    if (measured.error().message.empty()) __builtin_trap();
    return 0;
  }
  for (int kind = 0; kind < 8; ++kind)
    for (const auto& curve : measured->curves(static_cast<maya::CollectiveKind>(kind), kind % 2))
      for (const double bytes : {1.0, 4096.0, 1e12})
        if (!(curve.at(bytes) >= 0)) __builtin_trap();
  measured->engine_us(maya::CollectiveLibrary::vllm, 8, 4096);
  return 0;
}
