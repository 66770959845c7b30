// cuBLASLt through its C interface, on an emulated H100.
#include <gtest/gtest.h>

#include "abi/cublas.h"
#include "shim/testing/machine.h"

using namespace maya::abi;

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t*);
cublasStatus_t cublasLtMatmulDescInit_internal(void*, std::size_t, cublasComputeType_t,
                                               cudaDataType);
cublasStatus_t cublasLtMatmulDescSetAttribute(void*, int, const void*, std::size_t);
cublasStatus_t cublasLtMatmulDescGetAttribute(void*, int, void*, std::size_t, std::size_t*);
cublasStatus_t cublasLtMatrixLayoutInit_internal(void*, std::size_t, cudaDataType, std::uint64_t,
                                                 std::uint64_t, std::int64_t);
cublasStatus_t cublasLtMatmulPreferenceInit_internal(void*, std::size_t);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, void*, void*, void*, void*, void*,
                                              void*, int, cublasLtMatmulHeuristicResult_t*, int*);
}

namespace {

class CublasLt : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(maya::shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog"));
  }
  void SetUp() override {
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceInit_internal(preference, sizeof preference),
              CUBLAS_STATUS_SUCCESS);
  }
  void set(int attribute, std::int32_t value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(matmul, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t heuristic(cudaDataType in, cudaDataType out, cublasComputeType_t compute,
                           bool transpose_a, std::int64_t m, std::int64_t n, std::int64_t k,
                           int wanted = 1) {
    cublasLtMatmulDescInit_internal(matmul, sizeof matmul, compute, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    cublasLtMatrixLayoutInit_internal(a, sizeof a, in, transpose_a ? k : m, transpose_a ? m : k,
                                      transpose_a ? k : m);
    cublasLtMatrixLayoutInit_internal(b, sizeof b, in, k, n, k);
    cublasLtMatrixLayoutInit_internal(d, sizeof d, out, m, n, m);
    returned = -1;
    return cublasLtMatmulAlgoGetHeuristic(handle, matmul, a, b, d, d, preference, wanted, results,
                                          &returned);
  }

  cublasLtHandle_t handle{};
  alignas(8) char matmul[184]{}, a[64]{}, b[64]{}, d[64]{}, preference[64]{};
  cublasLtMatmulHeuristicResult_t results[8]{};
  int returned{};
};

TEST_F(CublasLt, AttributesComeBackAsTheyWereSet) {
  ASSERT_EQ(cublasLtMatmulDescInit_internal(matmul, sizeof matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  const void* bias = &bias;
  ASSERT_EQ(
      cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
      CUBLAS_STATUS_SUCCESS);
  std::int8_t fast = 1;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, 1),
            CUBLAS_STATUS_SUCCESS);

  std::int32_t epilogue{}, type{};
  const void* back{};
  std::size_t written{};
  EXPECT_EQ(
      cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4, &written),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(epilogue, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT_EQ(written, 4u);
  EXPECT_EQ(
      cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &back, 8, nullptr),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, bias);
  // Unset types read as -1.
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, 4,
                                           nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(type, -1);
}

TEST_F(CublasLt, WrongSizesAreRefused) {
  EXPECT_EQ(cublasLtMatmulDescInit_internal(matmul, 64, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulDescInit_internal(matmul, sizeof matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  std::int64_t wide = 0;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &wide, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(matmul, 999, &wide, 8), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasLt, HeuristicAnswersValidProblems) {
  EXPECT_EQ(heuristic(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true, 4096, 4096, 1024, 8),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_GE(returned, 2);
  EXPECT_GT(results[0].wavesCount, 0);
  EXPECT_EQ(results[0].state, CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasLt, WorkspaceStaysWithinTheLimit) {
  // A deep product of few tiles splits its reduction only where the caller gives memory for it.
  ASSERT_EQ(heuristic(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, true, 128, 128, 65536),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(results[0].workspaceSize, 0u);
  std::uint64_t limit = 1 << 20;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit,
                                       sizeof limit);
  ASSERT_EQ(heuristic(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, true, 128, 128, 65536),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_GT(results[0].workspaceSize, 0u);
  EXPECT_LE(results[0].workspaceSize, limit);
}

TEST_F(CublasLt, ImpossibleProblemsAreNotSupported) {
  EXPECT_EQ(heuristic(CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true, 64, 64, 128),
            CUBLAS_STATUS_SUCCESS);
  // Hopper's FP8 products have k contiguous in both operands, and rows on 16 bytes.
  EXPECT_EQ(heuristic(CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, false, 64, 64, 128),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(heuristic(CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true, 64, 64, 120),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(heuristic(CUDA_R_16F, CUDA_R_32I, CUBLAS_COMPUTE_32I, true, 64, 64, 64),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(returned, 0);
}

TEST_F(CublasLt, ContradictingLayoutsAreInvalid) {
  heuristic(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, false, 64, 64, 64);
  cublasLtMatrixLayoutInit_internal(b, sizeof b, CUDA_R_16F, 65, 64, 65);
  EXPECT_EQ(
      cublasLtMatmulAlgoGetHeuristic(handle, matmul, a, b, d, d, preference, 1, results, &returned),
      CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
