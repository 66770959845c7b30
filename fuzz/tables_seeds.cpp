#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> result{
      "# source\nh100-sxm,all_reduce,switch,8,1024,10 11 12.5 20\n"
      "h100-sxm,all_gather,ring,4,1,1 2\nh100-sxm,all_reduce,vllm,8,1024,5 6 7\n",
      "h100-sxm,all_reduce,any,2,1e300,1e-300 1e300\n"};
  // A forest of one family with one library, one feature, one step and one tree of one split.
  std::string forest = "MAYAFST1";
  auto put = [&](auto value) {
    forest.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  auto text = [&](const std::string& word) {
    put(static_cast<std::uint8_t>(word.size()));
    forest += word;
  };
  put(std::uint32_t{1});
  text("gemm");
  put(std::uint8_t{1}), text("torch"), put(std::uint8_t{0}), put(std::uint8_t{1});
  put(std::uint8_t{1}), put(1e9f), put(0.9f), put(1.1f);
  put(std::uint8_t{1}), put(4.0f), put(0.001f), put(std::uint16_t{1}), put(std::uint16_t{1});
  put(std::uint8_t{0}), put(std::uint8_t{0});
  put(std::uint8_t{255}), put(std::int16_t{5}), put(std::uint8_t{255}), put(std::int16_t{-5});
  result.push_back(forest);
  return result;
}

}  // namespace maya::fuzz
