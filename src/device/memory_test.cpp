#include "device/memory.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace maya::device {
namespace {

constexpr std::uint64_t GiB = std::uint64_t{1} << 30;

TEST(Memory, RefusesWhatDoesNotFitAndKeepsCounting) {
  Memory memory(1, 4 * GiB, GiB);
  EXPECT_EQ(memory.free_bytes(0), 3 * GiB);
  auto a = memory.allocate(0, 2 * GiB, MemoryKind::device);
  ASSERT_TRUE(a);
  EXPECT_FALSE(memory.allocate(0, 2 * GiB, MemoryKind::device));
  EXPECT_EQ(memory.free_bytes(0), GiB);
  auto b = memory.allocate(0, GiB, MemoryKind::device);
  ASSERT_TRUE(b);
  EXPECT_EQ(memory.free_bytes(0), 0u);
  EXPECT_EQ(memory.peak(0), 4 * GiB);
  ASSERT_TRUE(memory.release(a->address));
  EXPECT_EQ(memory.free_bytes(0), 2 * GiB);
  EXPECT_EQ(memory.peak(0), 4 * GiB);
}

TEST(Memory, HandsOutALittleMoreThanThereIs) {
  Memory memory(1, 4 * GiB, GiB, GiB / 2);
  ASSERT_TRUE(memory.allocate(0, 3 * GiB, MemoryKind::device));
  ASSERT_TRUE(memory.allocate(0, GiB / 2, MemoryKind::device));
  EXPECT_FALSE(memory.allocate(0, Memory::page, MemoryKind::device));
  EXPECT_EQ(memory.total(0), 4 * GiB);
  EXPECT_EQ(memory.free_bytes(0), 0u);
  EXPECT_EQ(memory.peak(0), 4 * GiB + GiB / 2);
}

TEST(Memory, LibrariesTakeTheirShareOfTheContextWithTheirFirstWork) {
  Memory memory(2, 4 * GiB, GiB, 0, GiB / 4);
  EXPECT_EQ(memory.used(0), GiB - GiB / 4);
  for (int i = 0; i < 2; ++i) {
    memory.load_libraries(0);
    EXPECT_EQ(memory.used(0), GiB);
    EXPECT_EQ(memory.peak(0), GiB);
  }
  EXPECT_EQ(memory.used(1), GiB - GiB / 4);
}

TEST(Memory, SmallRequestsShareAPageLargeOnesTakeWholePages) {
  Memory memory(1, GiB, 0);
  ASSERT_TRUE(memory.allocate(0, 1, MemoryKind::device));
  ASSERT_TRUE(memory.allocate(0, 1000, MemoryKind::device));
  EXPECT_EQ(memory.used(0), Memory::page);
  ASSERT_TRUE(memory.allocate(0, Memory::page + 1, MemoryKind::device));
  EXPECT_EQ(memory.used(0), 3 * Memory::page);
}

TEST(Memory, DoubleFreeAndStrangersAreRefused) {
  Memory memory(1, GiB, 0);
  auto a = memory.allocate(0, 4096, MemoryKind::device);
  ASSERT_TRUE(a);
  EXPECT_FALSE(memory.release(a->address + 1));
  EXPECT_TRUE(memory.release(a->address));
  EXPECT_FALSE(memory.release(a->address));
  EXPECT_FALSE(memory.release(12345));
}

TEST(Memory, FindsTheAllocationThatContainsAnAddress) {
  Memory memory(2, GiB, 0);
  auto a = memory.allocate(1, 1000, MemoryKind::managed);
  ASSERT_TRUE(a);
  EXPECT_EQ(memory.device_of(a->address), 1);
  EXPECT_EQ(memory.find(a->address + 999)->id, a->id);
  EXPECT_FALSE(memory.find(a->address + 1000));
  EXPECT_EQ(memory.extent(a->address + 400), 600u);
  EXPECT_EQ(memory.extent(0x1000), 0u);
}

TEST(Memory, MapsPhysicalMemoryIntoReservations) {
  Memory memory(1, 10 * Memory::page, 0);
  std::uint64_t base = memory.reserve(0, 100 * Memory::page, 0);  // more addresses than memory
  ASSERT_NE(base, 0u);
  EXPECT_EQ(memory.used(0), 0u);
  ASSERT_TRUE(memory.take_physical(0, 8 * Memory::page));
  EXPECT_FALSE(memory.take_physical(0, 3 * Memory::page));
  ASSERT_TRUE(memory.map(base, 8 * Memory::page, false));
  EXPECT_FALSE(memory.map(base + Memory::page, Memory::page, false)) << "overlaps a mapping";
  EXPECT_FALSE(memory.map(base + 99 * Memory::page, 2 * Memory::page, false))
      << "leaves the reservation";
  EXPECT_FALSE(memory.release(base)) << "cudaFree does not unmap";
  ASSERT_TRUE(memory.unmap(base));
  memory.give_physical(0, 8 * Memory::page);
  EXPECT_EQ(memory.used(0), 0u);
  EXPECT_TRUE(memory.unreserve(base, 100 * Memory::page));
  EXPECT_FALSE(memory.unreserve(base, 100 * Memory::page));
}

TEST(Memory, RandomUseNeverOverlapsAndEndsEmpty) {
  Memory memory(1, GiB, 0);
  std::mt19937 random(7);
  std::vector<Allocation> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2) {
      if (auto a = memory.allocate(0, 1 + random() % (8 << 20), MemoryKind::device))
        live.push_back(*a);
    } else {
      std::size_t k = random() % live.size();
      ASSERT_TRUE(memory.release(live[k].address));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  std::sort(live.begin(), live.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < live.size(); ++i)
    ASSERT_LE(live[i - 1].address + live[i - 1].bytes, live[i].address);
  for (const auto& a : live) memory.release(a.address);
  EXPECT_EQ(memory.used(0), 0u);
  EXPECT_TRUE(memory.allocate(0, GiB, MemoryKind::device)) << "addresses coalesce again";
}

}  // namespace
}  // namespace maya::device
