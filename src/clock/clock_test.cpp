#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "clock/arbiter.h"
#include "clock/domain.h"
#include "clock/system_call.h"

namespace maya::clock {
namespace {

constexpr std::int64_t ms = 1'000'000;

class Clock : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/clock-" + std::to_string(getpid());
    open(1.0);
  }
  void open(double scale) {
    unlink(path_.c_str());
    ASSERT_TRUE(Domain::create(path_, scale));
    domain_ = Domain::attach(path_);
    ASSERT_NE(domain_, nullptr);
  }
  void TearDown() override {
    stop_ = true;
    domain_->ring();
    if (thread_.joinable()) thread_.join();
    unlink(path_.c_str());
  }
  void start_arbiter(double patience = 10) {
    thread_ = std::thread([this, patience] {
      Arbiter arbiter(*domain_);
      arbiter.set_patience(patience);
      arbiter.run(stop_);
    });
  }
  Place& join(std::int64_t time = 0) {
    return *domain_->join(getpid(), static_cast<std::int32_t>(system_call(SYS_gettid)), time);
  }

  std::string path_;
  Domain* domain_{};
  std::atomic<bool> stop_{};
  std::thread thread_;
};

TEST_F(Clock, ASleepOfAnHourTakesNoTime) {
  start_arbiter();
  Place& place = join();
  const std::int64_t real = real_ns();
  EXPECT_TRUE(domain_->sleep(place, 0, 3600'000 * ms));
  EXPECT_EQ(place.time.load(), 3600'000 * ms);
  EXPECT_EQ(domain_->now(), 3600'000 * ms);
  EXPECT_LT(real_ns() - real, 60'000 * ms);
}

TEST_F(Clock, SleepersWakeInTheOrderOfTheirDeadlines) {
  // Processor time does not count: on a busy machine a thread may use more than the millisecond
  // between two deadlines.
  open(0);
  start_arbiter();
  constexpr int threads = 20, rounds = 10;
  std::atomic<std::int64_t> last{0};
  std::atomic<int> wrong{0}, ready{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      Place& place = join();
      ++ready;
      while (ready < threads) system_call(SYS_sched_yield);
      std::int64_t now = 0;
      for (int k = 0; k < rounds; ++k) {
        // Distinct deadlines, so that the order is one.
        const std::int64_t deadline = now + (1 + (i * 7 + k * 13) % 29) * ms + i * 1000 + k;
        if (!domain_->sleep(place, now, deadline)) ++wrong;
        now = place.time.load();
        if (now != deadline || last.exchange(now) > now) ++wrong;
      }
      domain_->leave(place);
    });
  for (auto& thread : all) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A thread that works holds time back as long as its own time is earlier.
TEST_F(Clock, AThreadAtWorkIsWaitedFor) {
  start_arbiter();
  std::atomic<bool> joined{}, over{};
  std::atomic<std::int64_t> woke_after{};
  std::thread worker([&] {
    Place& place = join();
    joined = true;
    const std::int64_t begin = real_ns(CLOCK_THREAD_CPUTIME_ID);
    // Says nothing of its time: the kernel's count is used.
    while (!over) {
    }
    woke_after = real_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    domain_->leave(place);
  });
  while (!joined) system_call(SYS_sched_yield);
  Place& place = join();
  EXPECT_TRUE(domain_->sleep(place, 0, 30 * ms));
  over = true;
  worker.join();
  EXPECT_GE(woke_after.load(), 29 * ms);
}

// One thread waits for its device and then says so; another one asks again and again whether it
// has.
TEST_F(Clock, WhoeverSpinsAsksAgainWhenTheDeviceIsDone) {
  start_arbiter();
  std::atomic<bool> joined{}, done{};
  Place& place = join();  // before the worker: nobody can act later than this thread until it waits
  std::thread worker([&] {
    Place& place = join();
    joined = true;
    EXPECT_TRUE(domain_->sleep(place, 0, 15 * ms, Waits::for_device));
    done = true;
    domain_->leave(place);
  });
  while (!joined) system_call(SYS_sched_yield);
  int rounds = 0;
  while (!done) {
    const std::int64_t now = place.time.load();
    EXPECT_TRUE(domain_->sleep(place, now, now + ms / 10, Waits::spinning));
    ++rounds;
  }
  worker.join();
  EXPECT_LT(rounds, 20);  // 150 in steps of their own
  EXPECT_GE(place.time.load(), 15 * ms);
  EXPECT_LT(place.time.load(), 17 * ms);
}

// One thread leaves something in shared memory and goes to sleep: whoever looks for it sees it then
// and not at the end of his own step.
TEST_F(Clock, WhoeverSpinsAsksAgainWhenAnotherHasActed) {
  open(0);
  start_arbiter();
  std::atomic<bool> joined{}, there{};
  Place& place = join();
  std::thread worker([&] {
    Place& place = join();
    joined = true;
    EXPECT_TRUE(domain_->sleep(place, 0, ms));
    there = true;
    place.time = ms + ms / 4;
    domain_->acted(ms + ms / 4);
    EXPECT_TRUE(domain_->sleep(place, ms + ms / 4, 50 * ms, Waits::for_device));
    domain_->leave(place);
  });
  while (!joined) system_call(SYS_sched_yield);
  while (!there) {
    const std::int64_t now = place.time.load();
    EXPECT_TRUE(domain_->sleep(place, now, now + 4 * ms, Waits::spinning));
  }
  EXPECT_GE(place.time.load(), ms + ms / 4);
  EXPECT_LT(place.time.load(), ms + ms / 2);
  worker.join();
}

TEST_F(Clock, AThreadThatSpinsAloneGoesOnInStepsOfItsOwn) {
  start_arbiter();
  Place& place = join();
  EXPECT_TRUE(domain_->sleep(place, 0, ms, Waits::spinning));
  EXPECT_EQ(place.time.load(), ms);
}

TEST_F(Clock, AThreadThatSleepsInTheKernelDoesNotHoldTime) {
  start_arbiter();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> joined{};
  std::thread reader([&] {
    Place& place = join();
    joined = true;
    char byte;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    domain_->leave(place);
  });
  while (!joined) system_call(SYS_sched_yield);
  Place& place = join();
  EXPECT_TRUE(domain_->sleep(place, 0, 1000'000 * ms));
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  reader.join();
  close(ends[0]), close(ends[1]);
}

TEST_F(Clock, AKilledParticipantIsForgotten) {
  start_arbiter();
  const pid_t child = fork();
  if (child == 0) {
    join();
    for (;;) {
    }
  }
  while (domain_->find(child, child) == nullptr) usleep(1000);
  std::thread killer([child] {
    usleep(50'000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
  Place& place = join();
  EXPECT_TRUE(domain_->sleep(place, 0, 3600'000 * ms));
  killer.join();
  EXPECT_EQ(domain_->find(child, child), nullptr);
}

TEST_F(Clock, TheWatchdogMovesTimeWhenAProcessIsStopped) {
  start_arbiter(0.3);
  const pid_t child = fork();
  if (child == 0) {
    join();
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  Place& place = join();
  EXPECT_TRUE(domain_->sleep(place, 0, 1000 * ms));
  EXPECT_GE(domain_->header().waits_forced.load(), 1u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(Clock, WithoutAnArbiterASleepTakesItsTime) {
  Place& place = join();
  const std::int64_t real = real_ns();
  EXPECT_TRUE(domain_->sleep(place, 0, 20 * ms));
  EXPECT_GE(real_ns() - real, 20 * ms);
}

TEST_F(Clock, BoardsKeepTheLatestArrivals) {
  EXPECT_EQ(domain_->read(77, 0), -1);
  for (std::uint32_t n = 0; n < 100; ++n) domain_->post(77, n, 1000 + n);
  EXPECT_EQ(domain_->read(77, 99), 1099);
  EXPECT_EQ(domain_->read(77, 10), -1);  // overwritten
  EXPECT_EQ(domain_->read(78, 99), -1);
}

TEST_F(Clock, TimeNeverFalls) {
  domain_->reached(5);
  domain_->reached(3);
  EXPECT_EQ(domain_->now(), 5);
}

}  // namespace
}  // namespace maya::clock
