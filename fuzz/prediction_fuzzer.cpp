// A prediction.json from another user, which `maya compare` reads and prints.
#include <cstdint>
#include <string>

#include "maya/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto prediction = maya::report::from_json(text, "fuzz.json");
  if (!prediction) {
    if (prediction.error().message.empty()) __builtin_trap();
    return 0;
  }
  maya::report::Style style;
  const std::string shown =
      maya::report::comparison({{"a", *prediction}, {"b", *prediction}}, style);
  if (shown.find('\033') != std::string::npos) __builtin_trap();  // no escape sequences
  maya::report::to_json(*prediction);
  return 0;
}
