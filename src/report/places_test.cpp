#include "report/places.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace maya::report {
namespace {

Result<Places> read(const std::string& text) {
  const std::string path = ::testing::TempDir() + "maya-" + std::to_string(getpid()) + ".places";
  std::ofstream(path, std::ios::binary) << text;
  trace::Recording recording;
  recording.records.resize(4);
  for (auto& record : recording.records) record.kind = trace::Kind::launch;
  auto places = read_places(path, recording);
  std::remove(path.c_str());
  return places;
}

TEST(Places, StacksAndModulesOfRecords) {
  const auto places = read(
      "maya places 1\ns 1 7f\t12:f:/home/a/train.py\nm 7f model.layer\np 0 1 1\nb 2 1 1\np 0 2 "
      "2\n");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->of_record, (std::vector<std::uint32_t>{0, 1, 2, 2}));
  EXPECT_EQ(places->own(2)->line, 12);
  EXPECT_EQ(places->modules[places->stacks[2].module], "model.layer");
}

TEST(Places, OtherFilesAreErrors) { EXPECT_FALSE(read("maya places 2\n")); }

// A gradient has a copy of the frames of its forward op: 20,000 copies of 1,000,000 frames.
TEST(Places, SmallFileCannotExhaustTheMemory) {
  std::string text = "maya places 1\ns 1 0\t" + std::string(1'000'000, '\t') +
                     "\ns 2 0\t1:f:" + std::string(1'000'000, 'x') + "\n";
  for (int i = 3; i < 20'000; ++i) text += "b " + std::to_string(i) + " 1 1\n";
  const auto places = read(text);
  ASSERT_TRUE(places);
  ASSERT_EQ(places->stacks.size(), 20'000u);
  std::size_t frames = 0, longest = 0;
  for (const Stack& stack : places->stacks) frames += stack.frames.size();
  for (const Frame& frame : places->frames) longest = std::max(longest, frame.file.size());
  EXPECT_LE(frames, 256u * 20'000u);
  EXPECT_LE(longest, 4096u);
}

TEST(Places, EscapeSequencesAreEscaped) {
  const auto places = read("maya places 1\ns 1 7f\t1:\033[2J:\033]0;a\nm 7f \033[31m\np 0 0 1\n");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->own(1)->function, "\\e[2J");
  EXPECT_EQ(places->modules[1], "\\e[31m");
}

// The lines of the user's frames of a stack, innermost first.
std::vector<int> lines(const Places& places, std::uint32_t stack) {
  std::vector<int> found;
  for (const std::uint32_t frame : places.stacks.at(stack).frames)
    if (!places.frames[frame].library) found.push_back(places.frames[frame].line);
  return found;
}

Places read_lines(const std::string& text) {
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
  const Places places = read_lines(
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
  const Places places = read_lines(
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
  const Places places = read_lines(
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
