// Capabilities and configuration of an algorithm, for callers that enumerate instead of asking the
// heuristic.
#include <cstddef>
#include <cstring>
#include <vector>

#include "shim/cublasLt/algorithm.h"
#include "shim/cublasLt/attribute.h"

using namespace maya::abi;
using namespace maya::shim::cublaslt;

namespace {

#define MAYA_FIELD(ID, FIELD, VISIBLE) \
  Attribute { ID, offsetof(Algorithm, FIELD), sizeof(Algorithm::FIELD), VISIBLE }
constexpr Attribute kConfig[] = {
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_ID, id, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_TILE_ID, tile, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, split_k, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, reduction, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, custom, 4),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_STAGES_ID, stages, 4),
};
// Two bytes in the interface, unlike all others.
constexpr Attribute kConfigShort[] = {
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, inner_shape, 2),
    MAYA_FIELD(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster_shape, 2),
};

Algorithm* known(const cublasLtMatmulAlgo_t* algo) {
  auto* own = reinterpret_cast<Algorithm*>(const_cast<cublasLtMatmulAlgo_t*>(algo));
  return own && own->magic == Algorithm::kMagic ? own : nullptr;
}

cublasStatus_t give(const void* from, std::size_t bytes, void* to, std::size_t size,
                    std::size_t* written) {
  if (size == 0 && !written) return CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = bytes;
  if (size == 0) return CUBLAS_STATUS_SUCCESS;
  if (!to || size < bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo, int attribute,
                                                    const void* from, std::size_t size) {
  Algorithm* own = known(algo);
  if (!own || !from) return CUBLAS_STATUS_INVALID_VALUE;
  if (const Attribute* narrow = find(kConfigShort, attribute)) {
    if (size != 2) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(reinterpret_cast<char*>(own) + narrow->offset, from, 2);
    return CUBLAS_STATUS_SUCCESS;
  }
  return set(kConfig, own, attribute, from, size);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo, int attribute,
                                                    void* to, std::size_t size,
                                                    std::size_t* written) {
  const Algorithm* own = known(algo);
  if (!own) return CUBLAS_STATUS_INVALID_VALUE;
  if (const Attribute* narrow = find(kConfigShort, attribute))
    return give(reinterpret_cast<const char*>(own) + narrow->offset, 2, to, size, written);
  return get(kConfig, own, attribute, to, size, written);
}

// Numbers of cublasLtMatmulAlgoCapAttributes_t.
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo, int attribute,
                                                 void* to, std::size_t size, std::size_t* written) {
  if (!known(algo)) return CUBLAS_STATUS_INVALID_VALUE;
  std::int32_t value = 0;
  switch (attribute) {
    case 0:   // split-K
    case 3:   // strided batch
    case 4:   // out of place
    case 2:   // CTA swizzling
    case 21:  // pointer-array batch
      value = 1;
      break;
    case 1:
      value = 7;
      break;   // every reduction scheme
    case 6: {  // tile ids
      std::vector<std::uint32_t> ids;
      for (const Tile& tile : kTiles) ids.push_back(tile.id);
      return give(ids.data(), ids.size() * sizeof(ids[0]), to, size, written);
    }
    case 13: {  // stage ids: undefined
      std::uint32_t stages = 0;
      return give(&stages, sizeof stages, to, size, written);
    }
    case 5:   // upper/lower
    case 7:   // custom options
    case 10:  // other memory orders
    case 14:  // negative ld
    case 20:  // atomic synchronization
    case 22:  // emulation
      value = 0;
      break;
    case 11:
      value = 31;
      break;  // pointer modes
    case 12:
      value = 0x3ff;
      break;    // epilogues
    case 15: {  // numerical implementation: any
      std::uint64_t flags = ~std::uint64_t{0};
      return give(&flags, sizeof flags, to, size, written);
    }
    case 16:
    case 17:
    case 18:
    case 19:
      value = 16;
      break;  // alignments
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return give(&value, sizeof value, to, size, written);
}

}  // extern "C"
