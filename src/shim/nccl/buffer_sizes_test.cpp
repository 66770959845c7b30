#include "shim/nccl/buffer_sizes.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace maya::nccl {
namespace {

constexpr std::uint64_t mib = 1 << 20;

catalog::Cluster h100(int nodes) {
  auto catalog = catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  EXPECT_TRUE(catalog) << catalog.error().message;
  auto cluster = catalog->cluster("dgx-h100:" + std::to_string(nodes));
  EXPECT_TRUE(cluster);
  return *cluster;
}

TEST(BufferSizes, AConnectionIsWhatNcclAllocates) {
  BufferSizes sizes(h100(1));
  // github.com/NVIDIA/nccl, issue 1685: 32 channels a peer, 10,485,760 and 2,097,152 bytes each.
  EXPECT_EQ(sizes.peer(false), 32 * 10485760u);
  EXPECT_EQ(sizes.peer(true), 32 * 2097152u);
  EXPECT_EQ(sizes.rings({8, 8}), 24 * 12 * mib);
  EXPECT_EQ(sizes.trees({8, 8}), 0u);
  EXPECT_EQ(sizes.switches({8, 8}), 256 * mib);
  EXPECT_EQ(sizes.switches({2, 2}), 0u);
}

TEST(BufferSizes, ARingThroughMachinesSharesTheirCards) {
  BufferSizes sizes(h100(4));
  EXPECT_EQ(sizes.rings({32, 8}), 16 * 12 * mib + 16 * 2 * 10 * mib / 8);
  EXPECT_EQ(sizes.rings({4, 1}), 16 * 2 * 10 * mib);
  EXPECT_GT(sizes.trees({4, 1}), 0u);
}

TEST(BufferSizes, TheEnvironmentDecides) {
  setenv("NCCL_BUFFSIZE", "1048576", 1);
  setenv("NCCL_MAX_NCHANNELS", "4", 1);
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  BufferSizes sizes(h100(1));
  unsetenv("NCCL_BUFFSIZE");
  unsetenv("NCCL_MAX_NCHANNELS");
  unsetenv("NCCL_NVLS_ENABLE");
  EXPECT_EQ(sizes.rings({8, 8}), 4 * (8 + 2) * mib);
  EXPECT_EQ(sizes.switches({8, 8}), 0u);
}

}  // namespace
}  // namespace maya::nccl
