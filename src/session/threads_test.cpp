// Sixteen threads on one device and one recording. Run under the thread sanitizer by `make tsan`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "maya/trace.h"
#include "session/calls.h"
#include "session/handles.h"
#include "session/recorder.h"
#include "session/state.h"
#include "shim/testing/machine.h"

namespace maya::session {
namespace {

namespace fs = std::filesystem;

struct Thing {
  static constexpr HandleKind kind = handle_kind("test thing");
  int value{};
};

// Everything that the entry points of several threads reach at the same time.
void use(unsigned seed, std::atomic<std::uint64_t>& fills) {
  std::mt19937 random(seed);
  void* stream = nullptr;
  ASSERT_EQ(stream_create(stream, 1, 0), 0);
  void* event = nullptr;
  ASSERT_EQ(event_create(event, 0), 0);
  for (int i = 0; i < 400; ++i) {
    Call call;
    void* memory = nullptr;
    ASSERT_EQ(allocate(&memory, 4096 + random() % 65536, MemoryKind::device), 0);
    if (fill(memory, 4096, i & 255, 1, 4096, 1, stream, true) == 0) ++fills;
    char bytes[256];
    copy({.to = bytes, .from = memory, .width = sizeof bytes}, stream, true);
    copy({.to = memory, .from = bytes, .width = sizeof bytes}, stream, true);
    Gemm gemm;
    gemm.m = 64 + random() % 32, gemm.n = gemm.k = 64;
    submit(stream, gemm, "gemm", {writes(memory, 1024)});
    event_record(event, stream);
    event_query(event);
    if (i % 16 == 0) stream_synchronize(stream);
    if (i % 50 == 0) {
      range_push("range");
      range_pop();
      warn("a warning of a test");
    }
    void* handle = make_handle<Thing>(i);
    ASSERT_NE(find_handle<Thing>(handle), nullptr);
    ASSERT_TRUE(drop_handle<Thing>(handle));
    ASSERT_EQ(release(memory), 0);
  }
  EXPECT_EQ(event_destroy(event), 0);
  EXPECT_EQ(stream_destroy(stream), 0);
}

TEST(Threads, SixteenThreadsLeaveOneWholeRecording) {
  const fs::path run = fs::temp_directory_path() / ("maya-threads-" + std::to_string(getpid()));
  fs::create_directories(run);
  ASSERT_TRUE(shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog"));
  setenv("MAYA_RUN_DIR", run.c_str(), 1);
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  std::atomic<std::uint64_t> fills{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 16; ++i) threads.emplace_back([&, i] { use(i, fills); });
  for (std::thread& thread : threads) thread.join();
  state().recorder.finish();
  auto recording = trace::read((run / "rank-0.maya").string());
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->complete);
  std::uint64_t recorded = 0;
  for (const trace::Record& record : recording->records)
    recorded += record.kind == trace::Kind::fill;
  EXPECT_EQ(recorded, fills);
  EXPECT_EQ(fills, 16u * 400);
  fs::remove_all(run);
}

// Threads that come first at the same time: nothing is written before the files are there, and no
// record of the slower ones is lost.
TEST(Threads, ARecordingThatBeginsInSeveralThreadsLosesNothing) {
  const fs::path run = fs::temp_directory_path() / ("maya-begin-" + std::to_string(getpid()));
  for (int round = 0; round < 100; ++round) {
    fs::create_directories(run);
    Settings settings = state().settings;
    settings.run_directory = run.string(), settings.rank = 0, settings.world_size = 1;
    Recorder recorder(settings);
    std::atomic<int> here{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (++here; here < 4;) std::this_thread::yield();
        if (!recorder.begun()) recorder.begin();
        for (int k = 0; k < 10; ++k) recorder.record(trace::Kind::event_record, 0, 1);
      });
    for (std::thread& thread : threads) thread.join();
    recorder.finish();
    const auto recording = trace::read((run / "rank-0.maya").string());
    ASSERT_TRUE(recording) << recording.error().message;
    std::size_t recorded = 0;
    for (const trace::Record& record : recording->records)
      recorded += record.kind == trace::Kind::event_record;
    ASSERT_EQ(recorded, 40u) << "round " << round;
    fs::remove_all(run);
  }
}

}  // namespace
}  // namespace maya::session
