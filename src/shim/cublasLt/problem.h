// A matmul as its descriptors state it: checked against what the library and the GPU support, and
// as an op.
#pragma once

#include "maya/op.h"
#include "shim/cublasLt/descriptor.h"

namespace maya::shim::cublaslt {

struct Problem {
  Gemm gemm;
  std::int64_t elements_d{};  // span of D in memory, for what is written; 0: behind pointers
};

// SUCCESS and the problem; INVALID_VALUE for descriptors that contradict each other; NOT_SUPPORTED
// for a combination that no kernel of this GPU takes.
abi::cublasStatus_t describe(const void* matmul, const void* a, const void* b, const void* c,
                             const void* d, Problem* problem);

}  // namespace maya::shim::cublaslt
