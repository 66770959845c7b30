// cuDNN's backend interface through its C entry points, on an emulated H100.
#include <gtest/gtest.h>

#include <vector>

#include "abi/cudnn.h"
#include "shim/testing/machine.h"

using namespace maya::abi;

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t*);
cudnnStatus_t cudnnBackendCreateDescriptor(int, void**);
cudnnStatus_t cudnnBackendDestroyDescriptor(void*);
cudnnStatus_t cudnnBackendSetAttribute(void*, int, int, std::int64_t, const void*);
cudnnStatus_t cudnnBackendGetAttribute(void*, int, int, std::int64_t, std::int64_t*, void*);
cudnnStatus_t cudnnBackendFinalize(void*);
}

namespace {

struct Descriptor {
  explicit Descriptor(int kind) {
    EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &own), CUDNN_STATUS_SUCCESS);
  }
  ~Descriptor() { cudnnBackendDestroyDescriptor(own); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void set(int name, std::vector<std::int64_t> values) {
    EXPECT_EQ(cudnnBackendSetAttribute(own, name, CUDNN_TYPE_INT64,
                                       static_cast<std::int64_t>(values.size()), values.data()),
              CUDNN_STATUS_SUCCESS);
  }
  void set_enum(int name, int type, int value) {
    EXPECT_EQ(cudnnBackendSetAttribute(own, name, type, 1, &value), CUDNN_STATUS_SUCCESS);
  }
  cudnnStatus_t refer(int name, const Descriptor& other) {
    return cudnnBackendSetAttribute(own, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.own);
  }
  cudnnStatus_t finalize() { return cudnnBackendFinalize(own); }
  void* own{};
};

void fill_tensor(Descriptor& tensor, std::int64_t uid, std::vector<std::int64_t> dims, int type) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  tensor.set_enum(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {uid});
  ASSERT_EQ(tensor.finalize(), CUDNN_STATUS_SUCCESS);
}

class Backend : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(maya::shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog"));
  }

  // A forward convolution of f32 tensors as an operation graph.
  void SetUp() override {
    fill_tensor(x, 1, {4, 16, 28, 28}, CUDNN_DATA_FLOAT);
    fill_tensor(w, 2, {32, 16, 3, 3}, CUDNN_DATA_FLOAT);
    fill_tensor(y, 3, {4, 32, 28, 28}, CUDNN_DATA_FLOAT);
    convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {1, 1});
    convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1});
    convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
    ASSERT_EQ(convolution.finalize(), CUDNN_STATUS_SUCCESS);
    operation.refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    operation.refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    operation.refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    operation.refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
    ASSERT_EQ(operation.finalize(), CUDNN_STATUS_SUCCESS);
    graph.refer(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    ASSERT_EQ(graph.finalize(), CUDNN_STATUS_SUCCESS);
  }
  std::vector<int> notes(std::int64_t index) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine.refer(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {index});
    EXPECT_EQ(engine.finalize(), CUDNN_STATUS_SUCCESS);
    std::vector<int> found(16);
    std::int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(engine.own, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, 16, &count, found.data()),
              CUDNN_STATUS_SUCCESS);
    found.resize(static_cast<std::size_t>(count));
    return found;
  }

  Descriptor x{CUDNN_BACKEND_TENSOR_DESCRIPTOR}, w{CUDNN_BACKEND_TENSOR_DESCRIPTOR},
      y{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
  Descriptor convolution{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
  Descriptor operation{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR};
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

TEST_F(Backend, EnginesCanBeAskedForByNumber) {
  std::int64_t engines = 0, count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(graph.own, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                     CUDNN_TYPE_INT64, 1, &count, &engines),
            CUDNN_STATUS_SUCCESS);
  EXPECT_GT(engines, 17);
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.refer(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {17});
  EXPECT_EQ(engine.finalize(), CUDNN_STATUS_SUCCESS);
}

TEST_F(Backend, AttributesComeBack) {
  std::int64_t dims[8] = {}, count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(x.own, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8,
                                     &count, dims),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(dims[1], 16);
}

TEST_F(Backend, FinalizedDescriptorsDoNotChange) {
  std::int64_t uid = 9;
  EXPECT_NE(cudnnBackendSetAttribute(x.own, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid),
            CUDNN_STATUS_SUCCESS);
}

TEST_F(Backend, IncompleteDescriptorsAreNotFinalized) {
  EXPECT_EQ(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR).finalize(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR).finalize(), CUDNN_STATUS_BAD_PARAM);
  Descriptor raw(CUDNN_BACKEND_TENSOR_DESCRIPTOR),
      user(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_NE(user.refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, raw), CUDNN_STATUS_SUCCESS);
}

// Frameworks obey allow_tf32 by dropping engines with the tensor-core note.
TEST_F(Backend, AnF32ConvolutionHasAnEngineWithAndOneWithoutTensorCores) {
  EXPECT_EQ(notes(0), std::vector<int>{CUDNN_NUMERICAL_NOTE_TENSOR_CORE});
  EXPECT_TRUE(notes(1).empty());
}

TEST_F(Backend, HeuristicsGiveNoMoreThanAsked) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set_enum(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  ASSERT_EQ(heuristics.finalize(), CUDNN_STATUS_SUCCESS);
  std::int64_t count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(heuristics.own, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 2);
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
      plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_EQ(cudnnBackendGetAttribute(heuristics.own, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config.own),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  plan.refer(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  EXPECT_EQ(plan.finalize(), CUDNN_STATUS_SUCCESS);
  std::int64_t bytes = -1;
  ASSERT_EQ(cudnnBackendGetAttribute(plan.own, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &bytes),
            CUDNN_STATUS_SUCCESS);
  EXPECT_GE(bytes, 0);
}

}  // namespace
