#include "session/testing/device.h"

namespace maya::session {
namespace {

constexpr int global = 0, thread_local_mode = 1, relaxed = 2;

class Capturing : public OnDevice {
 protected:
  void begin(int mode) { ASSERT_EQ(capture_begin(stream.handle, mode), 0); }
  int end() { return capture_end(stream.handle, graph); }
  int allocation() {
    void* address = nullptr;
    int error = allocate(&address, 64, MemoryKind::device);
    if (error == 0) release(address);
    return error;
  }
  void TearDown() override {
    if (graph != nullptr) graph_destroy(graph);
  }
  std::size_t nodes() {
    std::size_t count = 0;
    EXPECT_EQ(graph_nodes(graph, false, nullptr, &count), 0);
    return count;
  }

  TestStream stream, other;
  TestMemory memory;
  void* graph = nullptr;
};

TEST_F(Capturing, TheLegacyDefaultStreamIsRefused) {
  EXPECT_EQ(capture_begin(nullptr, global), code::capture_implicit);
}

TEST_F(Capturing, WorkBecomesNodesInOrder) {
  begin(global);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(submit(stream.handle, Gemm{.m = 64, .n = 64, .k = 64}, "gemm"), 0);
  ASSERT_EQ(end(), 0);
  ASSERT_EQ(nodes(), 2u);
  void *from = nullptr, *to = nullptr;
  std::size_t edges = 1;
  ASSERT_EQ(graph_edges(graph, &from, &to, &edges), 0);
  EXPECT_EQ(edges, 1u);
  int type = -1;
  ASSERT_EQ(node_type(from, &type), 0);
  EXPECT_EQ(type, static_cast<int>(NodeType::memset));
}

TEST_F(Capturing, SynchronizingTheStreamInvalidatesTheCapture) {
  begin(relaxed);
  EXPECT_EQ(stream_synchronize(stream.handle), code::capture_unsupported);
  EXPECT_EQ(fill_some(memory, stream.handle), code::capture_invalidated);
  EXPECT_EQ(end(), code::capture_invalidated);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Capturing, GlobalModeForbidsUnsafeCallsToEveryThread) {
  begin(global);
  EXPECT_EQ(elsewhere([&] { return allocation(); }), code::capture_unsupported);
  EXPECT_EQ(end(), code::capture_invalidated);
}

TEST_F(Capturing, ThreadLocalModeForbidsUnsafeCallsToItsOwnThread) {
  begin(thread_local_mode);
  EXPECT_EQ(elsewhere([&] { return allocation(); }), code::success);
  EXPECT_EQ(allocation(), code::capture_unsupported);
  EXPECT_EQ(end(), code::capture_invalidated);
}

TEST_F(Capturing, RelaxedModeForbidsNothing) {
  begin(relaxed);
  EXPECT_EQ(allocation(), code::success);
  EXPECT_EQ(end(), code::success);
}

TEST_F(Capturing, AThreadMayExchangeItsModeAndMakeUnsafeCalls) {
  begin(global);
  EXPECT_EQ(elsewhere([&] {
              int mode = relaxed;
              capture_exchange_mode(&mode);
              return mode == global ? allocation() : -1;
            }),
            code::success);
  EXPECT_EQ(end(), code::success);
  int mode = 3;
  EXPECT_EQ(capture_exchange_mode(&mode), code::invalid_value);
}

TEST_F(Capturing, EndsInTheThreadThatBeganItUnlessRelaxed) {
  begin(thread_local_mode);
  EXPECT_EQ(elsewhere([&] { return end(); }), code::capture_wrong_thread);
  EXPECT_EQ(end(), code::success);
  graph_destroy(graph);
  begin(relaxed);
  EXPECT_EQ(elsewhere([&] { return end(); }), code::success);
}

TEST_F(Capturing, AStreamJoinsByAnEventAndMustBeJoinedBack) {
  TestEvent fork, join;
  begin(global);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(event_record(fork.handle, stream.handle), 0);
  ASSERT_EQ(stream_wait_event(other.handle, fork.handle, 0), 0);
  ASSERT_EQ(fill_some(memory, other.handle), 0);
  EXPECT_EQ(capture_end(other.handle, graph), code::capture_unmatched);
  ASSERT_EQ(event_record(join.handle, other.handle), 0);
  ASSERT_EQ(stream_wait_event(stream.handle, join.handle, 0), 0);
  EXPECT_EQ(end(), code::success);
  EXPECT_EQ(nodes(), 2u);
}

TEST_F(Capturing, AStreamThatWasNotJoinedBackIsAnError) {
  TestEvent fork;
  begin(global);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(event_record(fork.handle, stream.handle), 0);
  ASSERT_EQ(stream_wait_event(other.handle, fork.handle, 0), 0);
  ASSERT_EQ(fill_some(memory, other.handle), 0);
  EXPECT_EQ(end(), code::capture_unjoined);
}

TEST_F(Capturing, EventsOfACaptureCannotBeAskedOrMergedIntoAnother) {
  TestEvent event;
  begin(relaxed);
  ASSERT_EQ(event_record(event.handle, stream.handle), 0);
  EXPECT_EQ(event_query(event.handle), code::captured_event);
  ASSERT_EQ(capture_begin(other.handle, relaxed), 0);
  EXPECT_EQ(stream_wait_event(other.handle, event.handle, 0), code::capture_merge);
  void* second = nullptr;
  EXPECT_EQ(capture_end(other.handle, second), code::success);
  graph_destroy(second);
  EXPECT_EQ(end(), code::success);
}

TEST_F(Capturing, WorkOutsideCannotBeWaitedForInside) {
  TestEvent outside;
  ASSERT_EQ(event_record(outside.handle, other.handle), 0);
  begin(relaxed);
  EXPECT_EQ(stream_wait_event(stream.handle, outside.handle, 0), code::capture_isolation);
  end();
}

TEST_F(Capturing, EndingWithoutABeginningIsNotPermitted) { EXPECT_EQ(end(), code::not_permitted); }

TEST_F(Capturing, TheStateTellsStatusGraphAndNextDependencies) {
  CaptureState state;
  ASSERT_EQ(capture_state(stream.handle, state), 0);
  EXPECT_EQ(state.status, 0);
  begin(relaxed);
  ASSERT_EQ(fill_some(memory, stream.handle), 0);
  ASSERT_EQ(capture_state(stream.handle, state), 0);
  EXPECT_EQ(state.status, 1);
  ASSERT_EQ(state.after.size(), 1u);
  void* const node = state.after[0];
  ASSERT_EQ(end(), 0);
  EXPECT_EQ(state.graph, graph);
  EXPECT_TRUE(valid_node(node));
}

}  // namespace
}  // namespace maya::session
