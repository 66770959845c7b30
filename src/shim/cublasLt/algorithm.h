// The 64 bytes of a cublasLtMatmulAlgo_t as we fill them.
#pragma once

#include <cstdint>

#include "abi/cublas.h"
#include "maya/op.h"

namespace maya::shim::cublaslt {

struct Algorithm {
  static constexpr std::uint32_t kMagic = 0x4d4c'5410;
  std::uint32_t magic{kMagic};
  std::int32_t id{};
  std::uint32_t tile{};
  std::uint32_t stages{};
  std::int32_t split_k{1};
  std::uint32_t reduction{};
  std::uint32_t swizzle{};
  std::uint32_t custom{};
  std::uint16_t inner_shape{}, cluster_shape{};
  std::uint32_t unused{};
  std::uint64_t workspace{};
};
static_assert(sizeof(Algorithm) <= sizeof(abi::cublasLtMatmulAlgo_t));

// Shapes of output tiles the kernels have, by the numbers of cublasLtMatmulTile_t.
struct Tile {
  std::uint32_t id;
  int m, n;
};
inline constexpr Tile kTiles[] = {{24, 256, 128}, {23, 128, 256}, {20, 128, 128}, {18, 128, 64},
                                  {17, 64, 128},  {15, 64, 64},   {13, 64, 32},   {11, 32, 32}};

// Tiles over the output, batches and splits, per SM: what the library calls waves.
double waves(const Gemm& gemm, const Tile& tile, int split_k);

}  // namespace maya::shim::cublaslt
