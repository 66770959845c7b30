#include "collate/caching_allocator.h"

#include <gtest/gtest.h>

namespace maya::collate {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

TEST(CachingAllocator, SegmentSizeDependsOnTensorSize) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(1, 100, 0), 2 * mib);  // small tensors share a segment of 2 MiB
  EXPECT_EQ(a.allocate(2, mib, 0), 0u);
  EXPECT_EQ(a.allocate(3, mib, 0), 2 * mib);       // 1023.5 KiB were left
  EXPECT_EQ(a.allocate(4, mib + 1, 0), 20 * mib);  // up to 10 MiB share a segment of 20 MiB
  EXPECT_EQ(a.allocate(5, 9 * mib, 0), 0u);
  EXPECT_EQ(a.allocate(6, 10 * mib, 0), 10 * mib);  // what was left is 10 MiB less 1.5 KiB
  EXPECT_EQ(a.allocate(7, 33 * mib + 1, 0), 34 * mib);
  EXPECT_EQ(a.reserved(), 68 * mib);
}

TEST(CachingAllocator, UsesTheSmallestFreeBlockAndMergesNeighbours) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(1, 6 * mib, 0), 20 * mib);
  EXPECT_EQ(a.allocate(2, 4 * mib, 0), 0u);
  EXPECT_EQ(a.allocate(3, 6 * mib, 0), 0u);  // 4 MiB are left
  a.release(1);
  EXPECT_EQ(a.allocate(4, 4 * mib, 0), 0u);  // the 4 MiB at the end, not the first 6
  EXPECT_EQ(a.allocate(5, 6 * mib, 0), 0u);  // they are still whole
  a.release(5), a.release(2), a.release(3);
  EXPECT_EQ(a.allocate(6, 16 * mib, 0), 0u);  // joined
  EXPECT_EQ(a.reserved(), 20 * mib);
}

TEST(CachingAllocator, LargeBlockIsNotSplitIfAtMostOneMebibyteRemains) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(1, 20 * mib, 0), 20 * mib);
  a.release(1);
  EXPECT_EQ(a.allocate(2, 19 * mib + 512 * kib, 0), 0u);
  EXPECT_EQ(a.allocate(3, 100 * kib, 0), 2 * mib);  // half a MiB was not left over
  EXPECT_EQ(a.allocate(4, 1100 * kib, 0), 20 * mib);
}

TEST(CachingAllocator, EmptyCacheReleasesSegmentsWithoutTensors) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(1, 30 * mib, 0), 30 * mib);
  EXPECT_EQ(a.allocate(2, 5 * mib, 0), 20 * mib);
  EXPECT_EQ(a.allocate(3, 40 * mib, 0), 40 * mib);
  a.release(1), a.release(3);
  const auto released = a.empty_cache();
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0].number, 0u);
  EXPECT_EQ(released[0].bytes, 30 * mib);
  EXPECT_EQ(released[1].number, 2u);
  EXPECT_EQ(a.reserved(), 20 * mib);
  EXPECT_TRUE(a.empty_cache().empty());
  EXPECT_EQ(a.allocate(4, 10 * mib, 0), 0u);        // the rest of the segment that is left
  EXPECT_EQ(a.allocate(5, 24 * mib, 0), 24 * mib);  // at the addresses of the first one
  EXPECT_EQ(a.allocate(6, 24 * mib, 0), 24 * mib);
  a.release(5), a.release(6);
  EXPECT_EQ(a.allocate(7, 24 * mib, 0), 0u);
  EXPECT_EQ(a.empty_cache().front().number, 4u) << "the lower of two equal blocks is used";
}

TEST(CachingAllocator, StreamsDoNotShare) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(1, 5 * mib, 0), 20 * mib);
  a.release(1);
  EXPECT_EQ(a.allocate(2, 5 * mib, 3), 20 * mib);
  EXPECT_EQ(a.allocate(3, 5 * mib, 0), 0u);
}

}  // namespace
}  // namespace maya::collate
