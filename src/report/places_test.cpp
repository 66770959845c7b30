#include "report/places.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

}  // namespace
}  // namespace maya::report
