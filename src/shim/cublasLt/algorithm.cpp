// Which algorithms a problem has, in the order the library would propose them.
//
// What a caller does with the answer is choose the first, or time them all. The duration is
// modelled from the problem, not from the tile, so the proposals only have to be plausible: tiles
// that fill the GPU first, the workspace of a split reduction within the caller's limit, and no
// algorithm at all where the library has none.
#include "shim/cublasLt/algorithm.h"
#include "shim/cublasLt/handle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "session/session.h"
#include "shim/common/element.h"
#include "shim/cublasLt/problem.h"

using namespace maya::abi;
using namespace maya::shim::cublaslt;
namespace session = maya::session;

namespace maya::shim::cublaslt {

double waves(const Gemm& gemm, const Tile& tile, int split_k) {
  double tiles =
      std::ceil(1.0 * gemm.m / tile.m) * std::ceil(1.0 * gemm.n / tile.n) * gemm.batch * split_k;
  return tiles / std::max(1, session::gpu().sms);
}

}  // namespace maya::shim::cublaslt

namespace {

struct Proposal {
  Algorithm algorithm;
  double waves;
  double cost;  // work of whole waves: what a tile shape wastes at the edges and in the last wave
};

// Algorithm ids in use by GPU generation; only their being stable and distinct matters.
int algorithm_id() {
  return maya::shim::capability() >= 90 ? 66 : maya::shim::capability() >= 80 ? 21 : 6;
}

std::vector<Proposal> propose(const maya::Gemm& gemm, std::uint64_t max_workspace) {
  std::vector<Proposal> proposals;
  for (const Tile& tile : kTiles) {
    Proposal proposal;
    proposal.algorithm.id = algorithm_id();
    proposal.algorithm.tile = tile.id;
    proposal.algorithm.stages = 0;
    int split = 1;
    double count = waves(gemm, tile, 1);
    if (count < 0.5 && gemm.k >= 2048) {
      int wanted = static_cast<int>(std::min<double>(8, std::floor(1 / count)));
      std::uint64_t each = static_cast<std::uint64_t>(gemm.m * gemm.n * gemm.batch) * 4;
      while (wanted > 1 && each * wanted > max_workspace) --wanted;
      split = std::max(1, wanted);
      if (split > 1) proposal.algorithm.workspace = each * split, proposal.algorithm.reduction = 2;
    }
    proposal.algorithm.split_k = split;
    proposal.waves = waves(gemm, tile, split);
    proposal.cost =
        std::ceil(proposal.waves) * tile.m * tile.n * (1 + 32.0 / tile.m + 32.0 / tile.n) / split;
    proposals.push_back(proposal);
  }
  std::stable_sort(proposals.begin(), proposals.end(),
                   [](const Proposal& x, const Proposal& y) { return x.cost < y.cost; });
  return proposals;
}

const Algorithm* known(const cublasLtMatmulAlgo_t* algo) {
  auto* own = reinterpret_cast<const Algorithm*>(algo);
  return own && own->magic == Algorithm::kMagic ? own : nullptr;
}

const Tile* tile_of(std::uint32_t id) {
  for (const Tile& tile : kTiles)
    if (tile.id == id) return &tile;
  return nullptr;
}

void fill(cublasLtMatmulHeuristicResult_t* result, const Proposal& proposal) {
  *result = {};
  std::memcpy(&result->algo, &proposal.algorithm, sizeof(Algorithm));
  result->workspaceSize = proposal.algorithm.workspace;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = static_cast<float>(proposal.waves);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto* wanted = as<Preference>(preference);
  if (!returned || !results || !wanted || requested <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  *returned = 0;
  Problem problem;
  cublasStatus_t status = describe(operation, a, b, c, d, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  // FP8, FP4 and IMMA kernels need 16-byte aligned operands; the others have a slow kernel for any
  // alignment.
  bool narrow = maya::shim::bits_of(problem.gemm.a) <= 8;
  if (narrow && std::min({wanted->align_a, wanted->align_b, wanted->align_d}) < 16)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  std::vector<Proposal> proposals = propose(problem.gemm, wanted->max_workspace);
  for (const Proposal& proposal : proposals) {
    if (*returned == requested) break;
    if (wanted->max_waves > 0 && proposal.waves > wanted->max_waves) continue;
    fill(&results[(*returned)++], proposal);
  }
  return *returned ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, int requested, int ids[],
                                        int* returned) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested <= 0 || !ids || !returned) return CUBLAS_STATUS_INVALID_VALUE;
  ids[0] = algorithm_id();
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, int id, cublasLtMatmulAlgo_t* algo) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!algo || id < 0) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm own;
  own.id = id;
  own.tile = 20;
  *algo = {};
  std::memcpy(algo, &own, sizeof own);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Algorithm* own = known(algo);
  if (!own || !result) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  cublasStatus_t status = describe(operation, a, b, c, d, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Proposal proposal{*own, 0, 0};
  if (own->split_k > 1 && own->reduction)
    proposal.algorithm.workspace =
        static_cast<std::uint64_t>(problem.gemm.m * problem.gemm.n * problem.gemm.batch) * 4 *
        own->split_k;
  if (const Tile* tile = tile_of(own->tile))
    proposal.waves = waves(problem.gemm, *tile, own->split_k);
  fill(result, proposal);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
