// Files of `maya calibrate` and of fitted models, which users may exchange.
#include <cstdint>
#include <string_view>

#include "estimate/calibration.h"
#include "estimate/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto calibration = maya::estimate::Calibration::parse(text, "fuzz.calibration");
  if (!calibration && calibration.error().message.empty()) __builtin_trap();
  auto model = maya::estimate::ModelFile::parse(text, "fuzz.model");
  if (!model && model.error().message.empty()) __builtin_trap();
  return 0;
}
