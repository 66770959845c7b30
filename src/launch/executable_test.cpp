#include "launch/executable.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace maya::launch {
namespace {

namespace fs = std::filesystem;

class ExecutableTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("executable_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0755) {
    std::string path = folder_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  fs::path folder_;
};

TEST_F(ExecutableTest, FindsAProgramAndItsLoader) {
  auto found = find_executable("sh", "/nonexistent:/bin");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/bin/sh");
  EXPECT_NE(found->loader.find("ld-linux"), std::string::npos);
}

TEST_F(ExecutableTest, FindsTheInterpreterOfAScript) {
  auto found = find_executable(file("a", "#!/usr/bin/env -S sh -e\n"), "/bin");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->interpreter, "/bin/sh");
}

TEST_F(ExecutableTest, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(find_executable("no-such-program", "/bin").error().message,
            "command not found: 'no-such-program' is not on PATH");
  EXPECT_NE(find_executable(file("t.py", "print(1)\n", 0644), "")
                .error()
                .message.find("did you mean `python "),
            std::string::npos);
  EXPECT_NE(find_executable(folder_, "").error().message.find("it is a directory"),
            std::string::npos);
  EXPECT_NE(
      find_executable(file("b", "#!/no/such/shell\n"), "").error().message.find("/no/such/shell"),
      std::string::npos);
}

TEST_F(ExecutableTest, RejectsMusl) {
  // The smallest ELF file with an interpreter: a header, one PT_INTERP segment, the name.
  std::string name("/lib/ld-musl-x86_64.so.1\0", 25);
  std::string elf(64 + 56, '\0');
  elf.replace(0, 5,
              "\x7f"
              "ELF\x02");
  elf[32] = 64;                                   // e_phoff
  elf[54] = 56, elf[56] = 1;                      // e_phentsize, e_phnum
  elf[64] = 3;                                    // PT_INTERP
  elf[64 + 8] = 120;                              // p_offset
  elf[64 + 32] = static_cast<char>(name.size());  // p_filesz
  auto found = find_executable(file("musl", elf + name), "");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("musl"), std::string::npos);
}

}  // namespace
}  // namespace maya::launch
