// Graphs through the driver's C interface, on an emulated H100.
#include <gtest/gtest.h>

#include <vector>

#include "abi/cuda.h"
#include "session/calls.h"
#include "shim/testing/machine.h"

using namespace maya::abi;

extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuMemAlloc_v2(CUdeviceptr*, std::size_t);
int cuStreamCreate(void**, unsigned);
int cuStreamBeginCaptureToGraph(void*, void*, void* const*, const void*, std::size_t, int);
int cuStreamEndCapture(void*, void**);
int cuMemsetD8Async(CUdeviceptr, unsigned char, std::size_t, void*);
int cuGraphCreate(void**, unsigned);
int cuGraphDestroy(void*);
int cuGraphClone(void**, void*);
int cuGraphAddNode_v2(void**, void*, void* const*, const void*, std::size_t, CUgraphNodeParams*);
int cuGraphAddChildGraphNode(void**, void*, void* const*, std::size_t, void*);
int cuGraphAddDependencies_v2(void*, void* const*, void* const*, const void*, std::size_t);
int cuGraphRemoveDependencies(void*, void* const*, void* const*, std::size_t);
int cuGraphGetNodes(void*, void**, std::size_t*);
int cuGraphNodeGetType(void*, int*);
int cuGraphNodeGetDependencies(void*, void**, std::size_t*);
int cuGraphNodeGetDependentNodes(void*, void**, std::size_t*);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphExecMemsetNodeSetParams(void*, void*, const CUDA_MEMSET_NODE_PARAMS*, void*);
int cuGraphExecDestroy(void*);
int cuGraphLaunch(void*, void*);
}

namespace {

void count(void* calls) { ++*static_cast<int*>(calls); }

class DriverGraph : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(maya::shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog"));
    void* context = nullptr;
    ASSERT_EQ(cuInit(0), 0);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(cuCtxSetCurrent(context), 0);
  }
  void SetUp() override {
    ASSERT_EQ(cuGraphCreate(&graph, 0), 0);
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    ASSERT_EQ(cuMemAlloc_v2(&memory, 1 << 20), 0);
  }
  CUDA_MEMSET_NODE_PARAMS fill(std::size_t bytes) const { return {memory, 0, 0, 1, bytes, 1}; }
  void* add_fill(void* to, std::vector<void*> after, std::size_t bytes) {
    CUgraphNodeParams p{};
    p.type = CU_GRAPH_NODE_TYPE_MEMSET;
    p.memset = fill(bytes);
    void* node = nullptr;
    EXPECT_EQ(cuGraphAddNode_v2(&node, to, after.data(), nullptr, after.size(), &p), 0);
    return node;
  }
  void* add_count(std::vector<void*> after) {
    CUgraphNodeParams p{};
    p.type = CU_GRAPH_NODE_TYPE_HOST;
    p.host = {count, &calls};
    void* node = nullptr;
    EXPECT_EQ(cuGraphAddNode_v2(&node, graph, after.data(), nullptr, after.size(), &p), 0);
    return node;
  }
  void* instantiate(void* from) {
    void* executable = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, from, 0), 0);
    return executable;
  }
  // The graph as the recording has it; equal graphs have one number.
  unsigned definition(void* executable) {
    EXPECT_EQ(cuGraphLaunch(executable, stream), 0);
    return maya::session::state().executables.find(executable)->definition;
  }

  void *graph{}, *stream{};
  CUdeviceptr memory{};
  int calls{};
};

TEST_F(DriverGraph, IsBuiltNodeByNodeAndRunsItsHostFunctions) {
  void* first = add_fill(graph, {}, 4096);
  add_count({first});
  void* executable = instantiate(graph);
  EXPECT_EQ(cuGraphLaunch(executable, stream), 0);
  EXPECT_EQ(cuGraphLaunch(executable, stream), 0);
  EXPECT_EQ(calls, 2);
}

TEST_F(DriverGraph, RefusesWhatIsNoNodeOfIt) {
  void* other = nullptr;
  ASSERT_EQ(cuGraphCreate(&other, 0), 0);
  void* stranger = add_fill(other, {}, 16);
  CUgraphNodeParams p{};
  p.type = CU_GRAPH_NODE_TYPE_EMPTY;
  void* node = nullptr;
  EXPECT_NE(cuGraphAddNode_v2(&node, graph, &stranger, nullptr, 1, &p), 0);
  EXPECT_NE(cuGraphAddNode_v2(&node, &p, nullptr, nullptr, 0, &p), 0);
  EXPECT_NE(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, nullptr), 0);
  p.type = CU_GRAPH_NODE_TYPE_KERNEL;  // without a function
  EXPECT_NE(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &p), 0);
  std::size_t there = 0;
  ASSERT_EQ(cuGraphGetNodes(graph, nullptr, &there), 0);
  EXPECT_EQ(there, 0u);
}

TEST_F(DriverGraph, ListsNodesAndEdges) {
  void* a = add_fill(graph, {}, 16);
  void* b = add_fill(graph, {a}, 16);
  void* c = add_fill(graph, {}, 16);
  ASSERT_EQ(cuGraphAddDependencies_v2(graph, &a, &c, nullptr, 1), 0);
  void* found[4]{};
  std::size_t count = 4;
  ASSERT_EQ(cuGraphGetNodes(graph, found, &count), 0);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(found[3], nullptr);
  int type = -1;
  ASSERT_EQ(cuGraphNodeGetType(b, &type), 0);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
  count = 4;
  ASSERT_EQ(cuGraphNodeGetDependentNodes(a, found, &count), 0);
  EXPECT_EQ(count, 2u);
  ASSERT_EQ(cuGraphRemoveDependencies(graph, &a, &c, 1), 0);
  ASSERT_EQ(cuGraphNodeGetDependencies(c, nullptr, &count), 0);
  EXPECT_EQ(count, 0u);
}

TEST_F(DriverGraph, ExchangedParametersTakeEffectAtTheNextLaunch) {
  void* node = add_fill(graph, {}, 4096);
  void* executable = instantiate(graph);
  unsigned before = definition(executable);
  auto same_size = fill(4096), larger = fill(8192);
  same_size.dst += 4096;
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, node, &same_size, nullptr), 0);
  EXPECT_EQ(definition(executable), before);
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, node, &larger, nullptr), 0);
  EXPECT_NE(definition(executable), before);
}

TEST_F(DriverGraph, AnExchangeOutlivesTheGraph) {
  void* node = add_fill(graph, {}, 4096);
  void* executable = instantiate(graph);
  unsigned before = definition(executable);
  auto larger = fill(8192);
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(executable, node, &larger, nullptr), 0);
  ASSERT_EQ(cuGraphDestroy(graph), 0);
  EXPECT_NE(definition(executable), before);
}

TEST_F(DriverGraph, ChildGraphsAndClonesAreCopies) {
  void *child = nullptr, *clone = nullptr, *node = nullptr;
  ASSERT_EQ(cuGraphCreate(&child, 0), 0);
  add_fill(child, {}, 4096);
  ASSERT_EQ(cuGraphClone(&clone, child), 0);
  ASSERT_EQ(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child), 0);
  ASSERT_EQ(cuGraphDestroy(child), 0);
  // One fill each: the same work for the device.
  EXPECT_EQ(definition(instantiate(graph)), definition(instantiate(clone)));
}

TEST_F(DriverGraph, TakesInWhatAStreamCaptures) {
  void* first = add_fill(graph, {}, 4096);
  ASSERT_EQ(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1, 2), 0);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 512, stream), 0);
  void* captured = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &captured), 0);
  EXPECT_EQ(captured, graph);
  std::size_t count = 0;
  ASSERT_EQ(cuGraphNodeGetDependentNodes(first, nullptr, &count), 0);
  EXPECT_EQ(count, 1u);
}

}  // namespace
