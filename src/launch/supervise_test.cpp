#include "launch/supervise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace maya::launch {
namespace {

Process shell(const std::string& script) {
  return {"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}};
}

TEST(Supervise, ReturnsTheExitCode) {
  EXPECT_EQ(*supervise({shell("exit 0")}), 0);
  EXPECT_EQ(*supervise({shell("exit 7")}), 7);
  EXPECT_EQ(*supervise({shell("kill -9 $$")}), 128 + 9);
  EXPECT_EQ(*supervise({shell("exit 0"), shell("exit 3")}), 3);
}

TEST(Supervise, OtherNodesAreEndedAfterAFailure) {
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(*supervise({shell("exit 5"), shell("exec sleep 60")}, {.seconds_after_failure = 0.2}),
            5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

int supervise_and_end(const std::string& script, bool* interrupted = nullptr) {
  // Every thread must block the signal, or it is delivered to one that does not.
  sigset_t mask, before;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, &before);
  std::thread sender([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(getpid(), SIGTERM);
  });
  Patience patience;
  patience.interrupted = [interrupted] {
    if (interrupted != nullptr) *interrupted = true;
  };
  auto code = supervise({shell(script)}, patience);
  sender.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return code ? *code : -1;
}

TEST(Supervise, SigtermReachesTheCommand) {
  bool interrupted = false;
  EXPECT_EQ(supervise_and_end("trap 'exit 42' TERM; while :; do sleep 0.1; done", &interrupted),
            42);
  EXPECT_TRUE(interrupted);
}

// Each rank of torchrun is in a session of its own.
TEST(Supervise, EnoughEndsProcessesInOtherSessionsToo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Patience patience;
  patience.enough = [] { return true; };
  const std::string rank = "setsid sh -c 'while :; do sleep 0.1; done'";
  EXPECT_TRUE(supervise({shell(fmt::format("{} <&{} & exec sleep 60", rank, ends[1]))}, patience));
  close(ends[1]);
  char nothing;
  EXPECT_EQ(read(ends[0], &nothing, 1), 0);  // end of file: no process has it open any more
  close(ends[0]);
}

TEST(Supervise, WorkersLeftByALauncherAreEnded) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // The worker holds the pipe open; the launcher ends without it.
  const std::string worker = "(trap 'exit 0' TERM; while :; do sleep 0.1; done)";
  EXPECT_EQ(supervise_and_end(fmt::format(
                "trap 'exit 3' TERM; {} <&{} & while :; do sleep 0.1; done", worker, ends[1])),
            3);
  close(ends[1]);
  char nothing;
  EXPECT_EQ(read(ends[0], &nothing, 1), 0);  // end of file: no process has it open any more
  close(ends[0]);
}

TEST(Supervise, MissingProgramIsAnError) {
  auto code = supervise({{"/no/such/program", {"x"}, {}}});
  ASSERT_FALSE(code);
  EXPECT_NE(code.error().message.find("/no/such/program"), std::string::npos);
}

TEST(Supervise, CapturesOutput) {
  EXPECT_EQ(*capture(shell("echo hello; echo noise >&2")), "hello\n");
  EXPECT_FALSE(capture(shell("exit 1")));
}

}  // namespace
}  // namespace maya::launch
