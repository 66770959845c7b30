// What is recorded of calls: one process, one recording, read back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <tuple>
#include <vector>

#include "maya/trace.h"
#include "session/state.h"
#include "shim/testing/machine.h"

namespace maya::session {
namespace {

namespace fs = std::filesystem;

TEST(Recording, KeepsTheOrderOfCallsAndMarksDefaultAndNonBlockingStreams) {
  const fs::path run = fs::temp_directory_path() / ("maya-recording-" + std::to_string(getpid()));
  fs::create_directories(run);
  ASSERT_TRUE(shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog"));
  setenv("MAYA_RUN_DIR", run.c_str(), 1);
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  void *blocking = nullptr, *other = nullptr, *event = nullptr;
  ASSERT_EQ(stream_create(blocking, 0, 0), 0);
  ASSERT_EQ(stream_create(other, 1, 0), 0);
  ASSERT_EQ(event_create(event, 2), 0);
  ASSERT_EQ(submit(nullptr, Fill{1}, "first"), 0);
  ASSERT_EQ(submit(blocking, Fill{2}, "second"), 0);
  ASSERT_EQ(event_record(event, blocking), 0);
  ASSERT_EQ(stream_wait_event(other, event, 0), 0);
  ASSERT_EQ(submit(other, Fill{3}, "third"), 0);
  ASSERT_EQ(stream_synchronize(other), 0);
  state().recorder.finish();

  auto recording = trace::read((run / "rank-0.maya").string());
  fs::remove_all(run);
  ASSERT_TRUE(recording) << recording.error().message;
  using trace::Kind;
  std::vector<std::pair<Kind, bool>> order;  // kind, on the legacy stream
  int non_blocking = 0, streams = 0;
  for (const trace::Record& record : recording->records) {
    if (record.kind == Kind::stream_create) {
      ++streams;
      non_blocking += (record.flags & trace::Flag::non_blocking) != 0;
    }
    if (record.kind == Kind::launch || record.kind == Kind::event_record ||
        record.kind == Kind::stream_wait_event || record.kind == Kind::stream_synchronize)
      order.emplace_back(record.kind, (record.flags & trace::Flag::legacy) != 0);
  }
  const std::vector<std::pair<Kind, bool>> expected = {
      {Kind::launch, true},        {Kind::launch, false},
      {Kind::event_record, false}, {Kind::stream_wait_event, false},
      {Kind::launch, false},       {Kind::stream_synchronize, false}};
  EXPECT_EQ(order, expected);
  EXPECT_EQ(streams, 2);
  EXPECT_EQ(non_blocking, 1);
}

}  // namespace
}  // namespace maya::session
