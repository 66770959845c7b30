#include "session/testing/device.h"

namespace maya::session {
namespace {

using Streams = OnDevice;
using Events = OnDevice;

void* const per_thread = reinterpret_cast<void*>(2);

TEST_F(Streams, ZeroAndOneAreTheLegacyDefaultStreamAndTwoIsTheThreadsOwn) {
  StreamProperties legacy, one, own, other;
  ASSERT_EQ(stream_properties(nullptr, legacy), 0);
  ASSERT_EQ(stream_properties(reinterpret_cast<void*>(1), one), 0);
  ASSERT_EQ(stream_properties(per_thread, own), 0);
  EXPECT_EQ(legacy.id, one.id);
  EXPECT_NE(legacy.id, own.id);
  ASSERT_EQ(elsewhere([&] { return stream_properties(per_thread, other); }), 0);
  EXPECT_NE(own.id, other.id);
}

TEST_F(Streams, DefaultStreamsCannotBeDestroyed) {
  for (std::uintptr_t handle : {0, 1, 2})
    EXPECT_EQ(stream_destroy(reinterpret_cast<void*>(handle)), code::invalid_handle);
}

TEST_F(Streams, ADestroyedStreamIsNoHandle) {
  void* stream = nullptr;
  ASSERT_EQ(stream_create(stream, 0, 0), 0);
  ASSERT_EQ(stream_destroy(stream), 0);
  EXPECT_EQ(stream_destroy(stream), code::invalid_handle);
  EXPECT_EQ(stream_synchronize(stream), code::invalid_handle);
  EXPECT_EQ(submit(stream, Fill{1}, "fill"), code::invalid_handle);
  EXPECT_FALSE(valid_stream(stream));
}

TEST_F(Streams, PrioritiesAreClampedToWhatTheDeviceHas) {
  void* stream = nullptr;
  StreamProperties properties;
  for (auto [asked, given] : {std::pair{-100, -5}, {-3, -3}, {7, 0}}) {
    ASSERT_EQ(stream_create(stream, 1, asked), 0);
    ASSERT_EQ(stream_properties(stream, properties), 0);
    EXPECT_EQ(properties.priority, given);
    stream_destroy(stream);
  }
}

TEST_F(Streams, WorkIsPendingUntilTheHostHasWaited) {
  TestStream stream;
  TestMemory memory;
  EXPECT_EQ(stream_query(stream.handle), code::success);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  EXPECT_EQ(stream_query(stream.handle), code::not_ready);
  ASSERT_EQ(stream_synchronize(stream.handle), 0);
  EXPECT_EQ(stream_query(stream.handle), code::success);
}

TEST_F(Streams, HostFunctionsRunOnceForEachCall) {
  TestStream stream;
  int calls = 0;
  auto count = [](void* data) { ++*static_cast<int*>(data); };
  ASSERT_EQ(stream_host_function(stream.handle, count, &calls), 0);
  ASSERT_EQ(stream_host_function(stream.handle, count, &calls), 0);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(stream_host_function(stream.handle, nullptr, nullptr), code::invalid_value);
}

TEST_F(Events, ThatWereNeverRecordedAreDoneAndWaitingForThemHasNoEffect) {
  TestStream stream;
  TestEvent event;
  EXPECT_EQ(event_query(event.handle), code::success);
  EXPECT_EQ(event_synchronize(event.handle), code::success);
  EXPECT_EQ(stream_wait_event(stream.handle, event.handle, 0), code::success);
}

TEST_F(Events, AreDoneOnceTheHostHasWaitedForThemOrForLaterWork) {
  TestStream stream;
  TestMemory memory;
  TestEvent first, second;
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(event_record(first.handle, stream.handle), 0);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(event_record(second.handle, stream.handle), 0);
  EXPECT_EQ(event_query(first.handle), code::not_ready);
  ASSERT_EQ(event_synchronize(second.handle), 0);
  EXPECT_EQ(event_query(first.handle), code::success);
  EXPECT_EQ(event_query(second.handle), code::success);
}

TEST_F(Events, OfAnotherStreamAreDoneWithTheWorkThatWaitedForThem) {
  TestStream producer, consumer;
  TestMemory memory;
  TestEvent produced, consumed;
  ASSERT_EQ(fill_some(memory, producer.handle), 0);
  ASSERT_EQ(event_record(produced.handle, producer.handle), 0);
  ASSERT_EQ(stream_wait_event(consumer.handle, produced.handle, 0), 0);
  ASSERT_EQ(event_record(consumed.handle, consumer.handle), 0);
  ASSERT_EQ(event_synchronize(consumed.handle), 0);
  EXPECT_EQ(event_query(produced.handle), code::success);
}

TEST_F(Events, MeasureTimeOnlyBetweenTwoRecordedEventsWithTiming) {
  TestStream stream;
  TestEvent start, end, untimed(2);
  float milliseconds = -1;
  EXPECT_EQ(event_elapsed(&milliseconds, start.handle, end.handle), code::invalid_handle);
  ASSERT_EQ(event_record(start.handle, stream.handle), 0);
  ASSERT_EQ(submit(stream.handle, Gemm{.m = 4096, .n = 4096, .k = 4096}, "gemm"), 0);
  ASSERT_EQ(event_record(end.handle, stream.handle), 0);
  ASSERT_EQ(event_record(untimed.handle, stream.handle), 0);
  EXPECT_EQ(event_elapsed(&milliseconds, start.handle, untimed.handle), code::invalid_handle);
  EXPECT_EQ(event_elapsed(nullptr, start.handle, end.handle), code::invalid_value);
  ASSERT_EQ(event_elapsed(&milliseconds, start.handle, end.handle), 0);
  EXPECT_GT(milliseconds, 0);
}

TEST_F(Events, ADestroyedEventIsNoHandle) {
  void* event = nullptr;
  ASSERT_EQ(event_create(event, 0), 0);
  ASSERT_EQ(event_destroy(event), 0);
  EXPECT_EQ(event_destroy(event), code::invalid_handle);
  EXPECT_EQ(event_query(event), code::invalid_handle);
  EXPECT_EQ(event_record(event, nullptr), code::invalid_handle);
}

TEST_F(Events, OnlyInterprocessEventsAreExported) {
  TestEvent plain, shared(2 | 4);
  std::uint32_t number = 0;
  EXPECT_EQ(event_export(plain.handle, number), code::invalid_value);
  EXPECT_EQ(event_export(shared.handle, number), code::success);
}

TEST(Errors, AreRememberedPerThreadUntilTheyAreAskedFor) {
  remember_error(code::invalid_value);
  EXPECT_EQ(elsewhere([] { return last_error(true); }), code::success);
  EXPECT_EQ(last_error(false), code::invalid_value);
  EXPECT_EQ(last_error(true), code::invalid_value);
  EXPECT_EQ(last_error(true), code::success);
}

}  // namespace
}  // namespace maya::session
