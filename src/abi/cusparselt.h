// cuSPARSELt. Its objects are opaque structs that the caller owns: bodies keep their state inside
// the given bytes.
#pragma once

#include "abi/cusparse.h"

namespace maya::abi {

// Their size has changed between releases (11,024, 1,024 and 512 bytes): use no more than the
// smallest. A pointer to state kept elsewhere fits in all.
constexpr size_t kLtObjectBytes = 512;

struct alignas(16) cusparseLtHandle_t {
  uint8_t data[kLtObjectBytes];
};
struct alignas(16) cusparseLtMatDescriptor_t {
  uint8_t data[kLtObjectBytes];
};
struct alignas(16) cusparseLtMatmulDescriptor_t {
  uint8_t data[kLtObjectBytes];
};
struct alignas(16) cusparseLtMatmulAlgSelection_t {
  uint8_t data[kLtObjectBytes];
};
struct alignas(16) cusparseLtMatmulPlan_t {
  uint8_t data[kLtObjectBytes];
};

enum cusparseLtSparsity_t : int { CUSPARSELT_SPARSITY_50_PERCENT = 0 };

enum cusparseComputeType : int {
  CUSPARSE_COMPUTE_32I = 0,
  CUSPARSE_COMPUTE_16F = 1,
  CUSPARSE_COMPUTE_32F = 2,
};

enum cusparseLtMatmulDescAttribute_t : int {
  CUSPARSELT_MATMUL_ACTIVATION_RELU = 0,
  CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND = 1,
  CUSPARSELT_MATMUL_ACTIVATION_RELU_THRESHOLD = 2,
  CUSPARSELT_MATMUL_ACTIVATION_GELU = 3,
  CUSPARSELT_MATMUL_ACTIVATION_GELU_SCALING = 4,
  CUSPARSELT_MATMUL_ALPHA_VECTOR_SCALING = 5,
  CUSPARSELT_MATMUL_BETA_VECTOR_SCALING = 6,
  CUSPARSELT_MATMUL_BIAS_STRIDE = 7,
  CUSPARSELT_MATMUL_BIAS_POINTER = 8,
  CUSPARSELT_MATMUL_SPARSE_MAT_POINTER = 9,
};

enum cusparseLtMatmulAlg_t : int { CUSPARSELT_MATMUL_ALG_DEFAULT = 0 };

enum cusparseLtMatmulAlgAttribute_t : int {
  CUSPARSELT_MATMUL_ALG_CONFIG_ID = 0,
  CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID = 1,
  CUSPARSELT_MATMUL_SEARCH_ITERATIONS = 2,
  CUSPARSELT_MATMUL_SPLIT_K = 3,
  CUSPARSELT_MATMUL_SPLIT_K_MODE = 4,
  CUSPARSELT_MATMUL_SPLIT_K_BUFFERS = 5,
};

enum cusparseLtPruneAlg_t : int {
  CUSPARSELT_PRUNE_SPMMA_TILE = 0,
  CUSPARSELT_PRUNE_SPMMA_STRIP = 1
};

}  // namespace maya::abi
