// For tests: an emulated H100 in this process, and things on it that clean up behind themselves.
#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "session/graphs.h"
#include "session/session.h"
#include "shim/testing/machine.h"

namespace maya::session {

// The process has an emulated H100 from now on. Nothing is recorded.
bool be_on_device();

class OnDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(be_on_device()); }
};

struct TestStream {
  void* handle{};
  explicit TestStream(unsigned flags = 1) { EXPECT_EQ(stream_create(handle, flags, 0), 0); }
  ~TestStream() { stream_destroy(handle); }
};

struct TestEvent {
  void* handle{};
  explicit TestEvent(unsigned flags = 0) { EXPECT_EQ(event_create(handle, flags), 0); }
  ~TestEvent() { event_destroy(handle); }
};

struct TestMemory {
  void* address{};
  explicit TestMemory(std::uint64_t bytes = 4096) {
    EXPECT_EQ(allocate(&address, bytes, MemoryKind::device), 0);
  }
  ~TestMemory() { release(address); }
};

inline int fill_some(const TestMemory& memory, void* stream) {
  return fill(memory.address, 256, 1, 1, 256, 1, stream, true);
}

// What a call returns in another thread.
template <class Call>
int elsewhere(Call&& call) {
  int code = -1;
  std::thread([&] { code = call(); }).join();
  return code;
}

}  // namespace maya::session
