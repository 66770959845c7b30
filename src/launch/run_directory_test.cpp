#include "launch/run_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
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

TEST_F(RunDirectoryTest, FinishedRunIsReplacedAndFilesOfTheUserAreKept) {
  {
    auto first = RunDirectory::create("r", "train");
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->replaced());
    list_in_manifest(first->path(), "rank-0.maya");
    for (const char* name : {"run.toml", "rank-0.maya", "mine.txt"})
      std::ofstream(first->path() + "/" + name) << 1;
  }
  auto second = RunDirectory::create("r", "train");
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->replaced());
  EXPECT_FALSE(fs::exists("r/rank-0.maya"));
  EXPECT_TRUE(fs::exists("r/mine.txt"));
}

TEST_F(RunDirectoryTest, RunInProgressIsNotTouched) {
  auto first = RunDirectory::create("r", "train");
  ASSERT_TRUE(first);
  auto second = RunDirectory::create("r", "train");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("still in progress"), std::string::npos);
}

TEST_F(RunDirectoryTest, DirectoryThatIsNotARunIsNotTouched) {
  fs::create_directory("home");
  std::ofstream("home/thesis.tex") << 1;
  EXPECT_FALSE(RunDirectory::create("home", "train"));
  EXPECT_FALSE(fs::exists("home/.lock"));
}

TEST_F(RunDirectoryTest, RecordingOfAKilledProcessGetsARank) {
  for (const char* name : {"process-12.maya", "process-12.maya.tail", "process-7.maya"})
    std::ofstream(name) << name;
  name_orphans(".");
  EXPECT_TRUE(fs::exists("rank-0.maya"));
  EXPECT_TRUE(fs::exists("rank-0.maya.tail"));
  EXPECT_TRUE(fs::exists("rank-0.2.maya"));
  EXPECT_FALSE(fs::exists("process-7.maya"));
}

TEST_F(RunDirectoryTest, NewDirectoryIsPrivate) {
  auto run = RunDirectory::create("deep/er/r", "train");
  ASSERT_TRUE(run);
  EXPECT_EQ(fs::status("deep/er/r").permissions(), fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, LockIsHeldAsLongAsAChildOfTheLauncherRuns) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  pid_t child = 0;
  {
    auto first = RunDirectory::create("r", "train");
    ASSERT_TRUE(first);
    child = fork();
    if (child == 0) {  // a process of the run, exec'ed as its command would be
      execlp("sleep", "sleep", "60", nullptr);
      _exit(127);
    }
    list_in_manifest(first->path(), "rank-0.maya");
    std::ofstream(first->path() + "/rank-0.maya") << 1;
  }
  auto second = RunDirectory::create("r", "train");
  EXPECT_FALSE(second);
  EXPECT_TRUE(fs::exists("r/rank-0.maya"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunDirectory::create("r", "train"));
  EXPECT_FALSE(fs::exists("r/rank-0.maya"));
}

TEST_F(RunDirectoryTest, DirectoryWithFileNamesOfARunIsNotTouched) {
  fs::create_directories("mine/ptx");
  for (const char* name : {"run.toml", ".lock", "rank-0.maya", "stdout", "ptx/notes"})
    std::ofstream(std::string("mine/") + name) << "mine";
  auto run = RunDirectory::create("mine", "train");
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().message.find("not made by"), std::string::npos) << run.error().message;
  for (const char* name : {"run.toml", ".lock", "rank-0.maya", "stdout", "ptx/notes"})
    EXPECT_TRUE(fs::exists(std::string("mine/") + name)) << name;
}

TEST_F(RunDirectoryTest, UnlistedRecordingIsNotRemoved) {
  { ASSERT_TRUE(RunDirectory::create("r", "train")); }
  std::ofstream("r/rank-7.maya") << "mine";
  auto again = RunDirectory::create("r", "train");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("rank-7.maya"), std::string::npos);
  EXPECT_TRUE(fs::exists("r/rank-7.maya"));
}

TEST_F(RunDirectoryTest, UnlistedFileUnderTheNameOfTheClockIsNotRemoved) {
  { ASSERT_TRUE(RunDirectory::create("r", "train")); }
  std::string manifest;
  {
    std::ifstream file("r/.manifest");
    for (std::string line; std::getline(file, line);)
      if (line != "clock") manifest += line + "\n";
  }
  std::ofstream("r/.manifest") << manifest;  // of a run of an earlier version
  std::ofstream("r/clock") << "mine";
  auto again = RunDirectory::create("r", "train");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("r/clock"), std::string::npos);
  EXPECT_TRUE(fs::exists("r/clock"));
}

TEST_F(RunDirectoryTest, ManifestCannotListFilesOutsideTheDirectory) {
  { ASSERT_TRUE(RunDirectory::create("r", "train")); }
  std::ofstream("precious") << 1;
  fs::create_directory("folder");
  fs::create_symlink(fs::absolute("folder"), "r/exchange");
  std::ofstream("folder/precious") << 1;
  list_in_manifest("r", "../precious");
  list_in_manifest("r", (folder_ / "precious").string());
  ASSERT_TRUE(RunDirectory::create("r", "train"));
  EXPECT_TRUE(fs::exists("precious"));
  EXPECT_TRUE(fs::exists("folder/precious"));
}

}  // namespace
}  // namespace maya::launch
