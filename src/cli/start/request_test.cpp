#include "request.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace maya::start {
namespace {

Program parsed(std::vector<const char*> words) {
  words.push_back(nullptr);
  return parse_words(const_cast<char* const*>(words.data()));
}

class Requests : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("MAYA_START_MAIN");
    setenv("RANK", "0", 1);
  }
  void TearDown() override { unsetenv("RANK"); }
};

TEST_F(Requests, ScriptOfARankIsForked) {
  const Program program = parsed({"/bin/python", "-u", "-X", "dev", "train.py", "-m", "x"});
  EXPECT_TRUE(program.reproducible);
  EXPECT_EQ(program.kind, Kind::script);
  EXPECT_EQ(program.target, 4);
  EXPECT_EQ(program.options, (std::vector<std::string>{"-u", "-X", "dev"}));
}

TEST_F(Requests, ModulesAndSpawnedProcessesAreForked) {
  EXPECT_EQ(parsed({"/bin/python", "-m", "train"}).kind, Kind::module);
  EXPECT_TRUE(parsed({"/bin/python", "-m", "train"}).reproducible);
  EXPECT_TRUE(
      parsed({"/bin/python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"})
          .reproducible);
}

TEST_F(Requests, UnknownOptionsAndInteractiveUseAreNotForked) {
  EXPECT_FALSE(parsed({"/bin/python", "-i", "train.py"}).reproducible);
  EXPECT_FALSE(parsed({"/bin/python", "-"}).reproducible);
  EXPECT_FALSE(parsed({"/bin/python"}).reproducible);
  EXPECT_FALSE(parsed({"/bin/python", "-c", "print(1)"}).reproducible);
  EXPECT_FALSE(parsed({"/bin/python", "--version"}).reproducible);
}

TEST_F(Requests, HelpersThatAreNotRanksAreNotForked) {
  EXPECT_FALSE(parsed({"/bin/python", "/x/site-packages/torch/worker.py"}).reproducible);
  unsetenv("RANK");
  EXPECT_FALSE(parsed({"/bin/python", "prepare.py"}).reproducible);
  EXPECT_TRUE(parsed({"/bin/python", "/x/bin/torchrun", "train.py"}).reproducible);
  setenv("MAYA_START_MAIN", "1", 1);
  EXPECT_TRUE(parsed({"/bin/python", "prepare.py"}).reproducible);
}

}  // namespace
}  // namespace maya::start
