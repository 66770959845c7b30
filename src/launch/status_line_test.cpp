#include "launch/status_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "launch/job_clock.h"

namespace maya::launch {
namespace {

TEST(StatusLine, KeepsWholeCharacters) {
  EXPECT_EQ(first_columns("step 1", 80), "step 1");
  EXPECT_EQ(first_columns("a·b·c", 3), "a·b");
  EXPECT_EQ(first_columns("a·b·c", 2), "a·");
  EXPECT_EQ(first_columns("", 10), "");
}

TEST(StatusLine, IsDrawnInTheLastRowAndErased) {
  int terminal = -1, program = -1;
  winsize size{};
  size.ws_row = 24, size.ws_col = 80;
  ASSERT_EQ(openpty(&terminal, &program, nullptr, nullptr, &size), 0);
  std::atomic<bool> asked{false};
  std::string seen;
  {
    StatusLine line(program, [&] {
      asked = true;
      return std::string("step 3");
    });
    char bytes[512];
    while (seen.find("step 3") == std::string::npos) {
      const auto count = read(terminal, bytes, sizeof bytes);
      ASSERT_GT(count, 0);
      seen.append(bytes, static_cast<std::size_t>(count));
    }
  }
  EXPECT_TRUE(asked);
  EXPECT_NE(seen.find("\033[1;23r"), std::string::npos) << "the last row does not scroll";
  EXPECT_NE(seen.find("\033[24;1H\033[2Kstep 3"), std::string::npos);
  char bytes[512];
  const auto count = read(terminal, bytes, sizeof bytes);
  ASSERT_GT(count, 0);
  seen.assign(bytes, static_cast<std::size_t>(count));
  EXPECT_NE(seen.find("\033[24;1H\033[2K\033[r"), std::string::npos) << "everything scrolls again";
  close(terminal);
  close(program);
}

TEST(SpeedWords, SayWhichIsFaster) {
  EXPECT_EQ(speed_words(12, 4), "12.0 s simulated, 3.0 times faster than real time");
  EXPECT_EQ(speed_words(2, 5), "2.0 s simulated, 2.5 times slower than real time");
  EXPECT_EQ(speed_words(0, 5), "0.0 s simulated");
}

}  // namespace
}  // namespace maya::launch
