#include "base/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace maya::base {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("files_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string in(const char* name) const { return (folder_ / name).string(); }
  std::string text(const char* name) const { return *read_file(in(name), 1000); }
  fs::path folder_;
};

TEST_F(Files, ReadReturnsWhatWasWritten) {
  ASSERT_TRUE(write_file(in("a"), "one"));
  ASSERT_TRUE(write_file(in("a"), "two"));
  EXPECT_EQ(text("a"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing else is left";
}

TEST_F(Files, PermissionsFollowTheDirectory) {
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_TRUE(write_file(in("a"), "x"));
  EXPECT_EQ(fs::status(in("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, SymbolicLinkIsReplacedNotFollowed) {
  ASSERT_TRUE(write_file(in("victim"), "theirs"));
  fs::create_symlink(in("victim"), in("a"));
  ASSERT_TRUE(write_file(in("a"), "ours"));
  EXPECT_EQ(text("victim"), "theirs");
  EXPECT_EQ(text("a"), "ours");
}

TEST_F(Files, FullDiskKeepsTheOldBytes) {
  ASSERT_TRUE(write_file(in("a"), "old"));
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 10;
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = write_file(in("a"), std::string(1000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("cannot write"), std::string::npos);
  EXPECT_EQ(text("a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, SpecialAndLargeFilesAreRejected) {
  ASSERT_EQ(mkfifo(in("fifo").c_str(), 0600), 0);
  for (const std::string& path :
       {in("fifo"), std::string("/dev/zero"), in("missing"), folder_.string()})
    EXPECT_FALSE(read_file(path, 1000)) << path;
  ASSERT_TRUE(write_file(in("large"), std::string(1001, 'x')));
  EXPECT_FALSE(read_file(in("large"), 1000));
}

}  // namespace
}  // namespace maya::base
