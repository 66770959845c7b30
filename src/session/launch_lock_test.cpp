#include "session/launch_lock.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <thread>

#include "device/memory.h"
#include "values/known_bytes.h"

namespace maya::session {

LaunchLock& launch_lock() {
  static LaunchLock lock;
  return lock;
}

namespace {

using namespace std::chrono_literals;

TEST(LaunchLock, IsHeldByOneThreadAtATime) {
  int counter = 0;
  auto count = [&] {
    for (int i = 0; i < 20000; ++i) {
      LaunchLock::Hold hold(launch_lock());
      ++counter;
    }
  };
  std::thread other(count);
  count();
  other.join();
  EXPECT_EQ(counter, 40000);
}

// A result that needs another thread to launch first, as a peer may.
struct NeedsALaunch : values::KnownBytes::Pending {
  std::promise<void> launched;
  bool resolve(void* to, std::uint64_t bytes) override {
    std::memset(to, 7, bytes);
    return launched.get_future().wait_for(20s) == std::future_status::ready;
  }
};

TEST(LaunchLock, DoesNotSpanTheWaitForAPeer) {
  device::Memory memory(1, std::uint64_t{1} << 30, 0);
  values::KnownBytes values(memory.base(), memory.span());
  const std::uint64_t address = memory.base();
  values.wait_by(
      [](const std::function<void()>& resolve) { launch_lock().released_while(resolve); });
  auto pending = std::make_shared<NeedsALaunch>();
  values.promise(address, 8, pending);
  std::thread other;
  {
    LaunchLock::Hold hold(launch_lock());
    other = std::thread([&] {
      LaunchLock::Hold own(launch_lock());
      pending->launched.set_value();
    });
    const auto* known = static_cast<const char*>(values.known(address, 8));
    ASSERT_NE(known, nullptr) << "the other thread could not launch during the wait";
    EXPECT_EQ(known[0], 7);
  }
  other.join();
}

TEST(LaunchLock, IsNotTakenByAThreadThatDidNotHoldIt) {
  launch_lock().released_while([] {});
  std::async(std::launch::async, [] { LaunchLock::Hold hold(launch_lock()); }).get();
}

}  // namespace
}  // namespace maya::session
