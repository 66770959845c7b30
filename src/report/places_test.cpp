#include "report/places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace maya::report {
namespace {

// The lines of the user's frames of a stack, innermost first.
std::vector<int> lines(const Places& places, std::uint32_t stack) {
  std::vector<int> found;
  for (const std::uint32_t frame : places.stacks.at(stack).frames)
    if (!places.frames[frame].library) found.push_back(places.frames[frame].line);
  return found;
}

Places read(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/maya_places_test.places";
  std::ofstream(path) << "maya places 1\n" << text;
  auto places = read_places(path, {});
  std::filesystem::remove(path);
  EXPECT_TRUE(places);
  return places ? *places : Places{};
}

constexpr const char* generated = "/tmp/torchinductor_me/ab/cab.py";

TEST(Places, CompiledCodeIsShownAsTheLinesItWasMadeFrom) {
  const std::string file = generated;
  const Places places = read(
      "s 1 0\t5:launcher:<string>\t40:Runner.call:" + file +
      "\t9:wrap:/x/site-packages/torch/a.py\t62:GPT.forward:/me/train.py\t115:main:/me/train.py\n"
      "g 30 0 " +
      file +
      "\t37:forward:/me/train.py\t66:forward:/me/train.py\n"
      "g 45 0 " +
      file +
      "\t38:forward:/me/train.py\t66:forward:/me/train.py\n"
      "s 2 0\t50:Runner.call:" +
      file +
      "\t62:GPT.forward:/me/train.py\t115:main:/me/train.py\n"
      "s 3 0\t10:Runner.call:" +
      file + "\t62:GPT.forward:/me/train.py\n");
  EXPECT_EQ(lines(places, 1), (std::vector<int>{37, 66, 115}));
  EXPECT_EQ(lines(places, 2), (std::vector<int>{38, 66, 115}));
  EXPECT_EQ(lines(places, 3), (std::vector<int>{62}));  // before the first line that is known
  EXPECT_FALSE(places.stacks[1].backward);
}

TEST(Places, CompiledGradientsCountForTheirForwardLine) {
  const std::string file = generated;
  const Places places = read(
      "s 1 0\t116:main:/me/train.py\n"
      "s 2 0\t40:Runner.call:" +
      file +
      "\n"
      "u 2 1\n"
      "g 30 1 " +
      file + "\t38:forward:/me/train.py\n");
  EXPECT_EQ(lines(places, 2), (std::vector<int>{38, 116}));
  EXPECT_TRUE(places.stacks[2].backward && places.stacks[2].tied);
}

TEST(Places, CodeOfTheAutogradEngineIsBelowTheCallOfBackward) {
  const Places places = read(
      "s 1 0\t116:main:/me/train.py\n"
      "s 2 0\t7:hook:/x/site-packages/torch/fsdp.py\n"
      "u 2 1\n"
      "u 2 9\nu 9 1\nu 1 2\n"  // names of stacks that do not exist
      "b 3 1 1\n");
  ASSERT_NE(places.own(2), nullptr);
  EXPECT_EQ(places.own(2)->line, 116);
  EXPECT_EQ(lines(places, 1), (std::vector<int>{116}));
  EXPECT_EQ(lines(places, 3), (std::vector<int>{116}));
  EXPECT_TRUE(places.stacks[3].backward);
}

}  // namespace
}  // namespace maya::report
