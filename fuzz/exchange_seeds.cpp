#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  std::string log;
  for (const std::uint64_t word : {std::uint64_t{0x0a474f4c4159414d}, std::uint64_t{0},
                                   std::uint64_t{32}, std::uint64_t{0}})  // the front
    log.append(reinterpret_cast<const char*>(&word), sizeof word);
  auto entry = [&](std::uint64_t key, std::uint64_t bytes, const std::string& payload) {
    const std::uint32_t known = 1, magic = 0x4d455843;
    for (const std::uint64_t word : {key, bytes})
      log.append(reinterpret_cast<const char*>(&word), sizeof word);
    for (const std::uint32_t word : {known, magic})
      log.append(reinterpret_cast<const char*>(&word), sizeof word);
    log += payload;
  };
  entry(0, 4, "abcd"), entry(1, 0, ""), entry(2, 8, "12345678");
  const std::string sound = log;
  entry(0, ~std::uint64_t{0} - 23, "");  // its end is its begin
  return {sound, log};
}

}  // namespace maya::fuzz
