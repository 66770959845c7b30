#include "launch/run_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace maya::launch {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("run_directory_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  fs::path folder_, before_;
};

TEST_F(RunDirectoryTest, RunsStartedInOneSecondDoNotShareADirectory) {
  auto a = RunDirectory::create("", "train"), b = RunDirectory::create("", "train");
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_NE(a->path(), b->path());
}

TEST_F(RunDirectoryTest, AFinishedRunIsReplacedAndAUsersFileStays) {
  {
    auto first = RunDirectory::create("r", "train");
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->replaced());
    for (const char* name : {"run.toml", "rank-0.maya", "mine.txt"})
      std::ofstream(first->path() + "/" + name) << 1;
  }
  auto second = RunDirectory::create("r", "train");
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->replaced());
  EXPECT_FALSE(fs::exists("r/rank-0.maya"));
  EXPECT_TRUE(fs::exists("r/mine.txt"));
}

TEST_F(RunDirectoryTest, ARunInProgressIsNotTouched) {
  auto first = RunDirectory::create("r", "train");
  ASSERT_TRUE(first);
  auto second = RunDirectory::create("r", "train");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("still going"), std::string::npos);
}

TEST_F(RunDirectoryTest, AForeignDirectoryIsNotTouched) {
  fs::create_directory("home");
  std::ofstream("home/thesis.tex") << 1;
  EXPECT_FALSE(RunDirectory::create("home", "train"));
  EXPECT_FALSE(fs::exists("home/.lock"));
}

TEST_F(RunDirectoryTest, TheRecordingOfAKilledProcessGetsARank) {
  for (const char* name : {"process-12.maya", "process-12.maya.tail", "process-7.maya"})
    std::ofstream(name) << name;
  name_orphans(".");
  EXPECT_TRUE(fs::exists("rank-0.maya"));
  EXPECT_TRUE(fs::exists("rank-0.maya.tail"));
  EXPECT_TRUE(fs::exists("rank-0.2.maya"));
  EXPECT_FALSE(fs::exists("process-7.maya"));
}

TEST_F(RunDirectoryTest, AFullDiskIsSaid) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  std::error_code code;
  fs::create_symlink("/dev/full", "x.new", code);
  auto status = write_file("x", "text");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace maya::launch
