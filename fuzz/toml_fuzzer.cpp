// Cluster files of users.
#include <cstdint>
#include <string_view>

#include "catalog/flat.h"
#include "catalog/toml_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = maya::catalog::parse_toml(text, "fuzz.toml");
  if (!file && file.error().message.empty()) __builtin_trap();
  auto flat = maya::catalog::parse_flat(text);
  if (!flat && flat.error().message.empty()) __builtin_trap();
  return 0;
}
