#include "session/handles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace maya::session {
namespace {

struct First {
  static constexpr HandleKind kind = handle_kind("test first");
  int value{};
};
struct Second {
  static constexpr HandleKind kind = handle_kind("test second");
  int value{};
};

TEST(Handles, ALivingHandleIsFound) {
  void* handle = make_handle<First>(7);
  ASSERT_NE(handle, nullptr);
  ASSERT_NE(find_handle<First>(handle), nullptr);
  EXPECT_EQ(find_handle<First>(handle)->value, 7);
  EXPECT_TRUE(drop_handle<First>(handle));
}

TEST(Handles, AMadeUpHandleIsNone) {
  void* handle = make_handle<First>();
  char memory[64]{};
  for (const void* made_up : {static_cast<const void*>(nullptr), static_cast<const void*>(memory),
                              reinterpret_cast<const void*>(1), reinterpret_cast<const void*>(-1),
                              static_cast<const void*>(static_cast<char*>(handle) + 1),
                              static_cast<const void*>(static_cast<char*>(handle) + 1600)}) {
    EXPECT_EQ(find_handle<First>(made_up), nullptr) << made_up;
    EXPECT_FALSE(drop_handle<First>(made_up)) << made_up;
  }
  EXPECT_EQ(find_handle<Second>(handle), nullptr) << "of another kind";
  EXPECT_FALSE(drop_handle<Second>(handle));
  EXPECT_TRUE(drop_handle<First>(handle));
}

TEST(Handles, ADestroyedHandleIsNone) {
  void* handle = make_handle<First>();
  EXPECT_TRUE(drop_handle<First>(handle));
  EXPECT_FALSE(drop_handle<First>(handle));
  EXPECT_EQ(find_handle<First>(handle), nullptr);
  void* next = make_handle<Second>();
  EXPECT_EQ(find_handle<First>(handle), nullptr) << "even if another took its place";
  drop_handle<Second>(next);
}

TEST(Handles, OneOfSixteenThreadsDestroysIt) {
  for (int round = 0; round < 200; ++round) {
    void* handle = make_handle<First>();
    std::atomic<int> destroyed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i)
      threads.emplace_back([&] { destroyed += drop_handle<First>(handle); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(destroyed, 1);
  }
}

}  // namespace
}  // namespace maya::session
