#include "session/host_memory.h"
#include "session/testing/device.h"
#include "session/virtual_memory.h"

namespace maya::session {
namespace {

using DeviceMemory = OnDevice;
using Pools = OnDevice;
using HostMemory = OnDevice;
using VirtualMemory = OnDevice;
using SharedBetweenProcesses = OnDevice;

constexpr std::uint64_t MiB = 1 << 20;

TEST_F(DeviceMemory, OfNoBytesIsANullPointerAndFreeingThatIsFine) {
  void* address = &address;
  ASSERT_EQ(allocate(&address, 0, MemoryKind::device), 0);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(release(nullptr), 0);
}

TEST_F(DeviceMemory, IsFreedOnceAndByItsFirstAddress) {
  void* address = nullptr;
  ASSERT_EQ(allocate(&address, 4096, MemoryKind::device), 0);
  EXPECT_EQ(release(static_cast<char*>(address) + 512), code::invalid_value);
  EXPECT_EQ(release(address), 0);
  EXPECT_EQ(release(address), code::invalid_value);
}

TEST_F(DeviceMemory, ThatDoesNotFitIsRefusedAndNothingIsTaken) {
  const std::uint64_t before = memory_used(0);
  void* address = nullptr;
  EXPECT_EQ(allocate(&address, memory_total(0), MemoryKind::device), code::out_of_memory);
  EXPECT_EQ(memory_used(0), before);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(memory_info(&free, &total), 0);
  EXPECT_EQ(free, total - before);
  const std::uint64_t pages = free / mapping_granularity * mapping_granularity;
  EXPECT_EQ(allocate(&address, pages - mapping_granularity, MemoryKind::device), 0);
  EXPECT_EQ(release(address), 0);
}

TEST_F(DeviceMemory, KeepsSmallValuesUntilItIsFreed) {
  int in = 42, out = 0;
  void* address = nullptr;
  ASSERT_EQ(allocate(&address, 4096, MemoryKind::device), 0);
  ASSERT_EQ(copy({.to = address, .from = &in, .width = 4}, nullptr, false), 0);
  ASSERT_EQ(copy({.to = &out, .from = address, .width = 4}, nullptr, false), 0);
  EXPECT_EQ(out, 42);
  ASSERT_EQ(release(address), 0);
  void* again = nullptr;
  ASSERT_EQ(allocate(&again, 4096, MemoryKind::device), 0);
  EXPECT_FALSE(read_device(&out, again, 4));
  EXPECT_EQ(out, 0);
  release(again);
}

TEST_F(DeviceMemory, CopiesStayInsideTheAllocation) {
  TestMemory memory(256);
  char host[512] = {};
  auto* address = static_cast<char*>(memory.address);
  EXPECT_EQ(copy({.to = address, .from = host, .width = 257}, nullptr, false), code::invalid_value);
  EXPECT_EQ(copy({.to = address, .from = nullptr, .width = 1}, nullptr, false),
            code::invalid_value);
  EXPECT_EQ(copy({.to = address, .from = host, .width = ~std::uint64_t{0}}, nullptr, false),
            code::invalid_value);
  EXPECT_EQ(copy({.to = address, .from = host, .width = 0}, nullptr, false), code::success);
}

TEST_F(DeviceMemory, PointersTellWhereTheyLead) {
  TestMemory memory(4096);
  void* pinned = nullptr;
  ASSERT_EQ(allocate_host(&pinned, 4096), 0);
  int local = 0;
  const Pointer inside = pointer(static_cast<char*>(memory.address) + 100);
  EXPECT_EQ(inside.where, Where::device);
  EXPECT_EQ(inside.base, reinterpret_cast<std::uint64_t>(memory.address));
  EXPECT_EQ(inside.bytes, 4096u);
  EXPECT_EQ(pointer(pinned).where, Where::pinned);
  EXPECT_EQ(pointer(&local).where, Where::pageable);
  EXPECT_FALSE(pointer(&local).allocated);
  release_host(pinned);
}

TEST_F(HostMemory, IsRegisteredOnceAndUnregisteredOnce) {
  static char buffer[4096];
  EXPECT_EQ(unregister_host(buffer), code::host_memory_not_registered);
  ASSERT_EQ(register_host(buffer, sizeof buffer), 0);
  EXPECT_EQ(register_host(buffer, sizeof buffer), code::host_memory_already_registered);
  EXPECT_TRUE(is_pinned(buffer + 4095));
  EXPECT_FALSE(is_pinned(buffer + 4096));
  EXPECT_EQ(unregister_host(buffer), 0);
  EXPECT_EQ(register_host(reinterpret_cast<void*>(64), 64), code::invalid_value);
}

TEST_F(Pools, CountWhatIsInUseAndTheMostThatWas) {
  constexpr int reserved = 5, used = 7, used_high = 8;
  TestStream stream;
  void *pool = nullptr, *address = nullptr;
  ASSERT_EQ(pool_of_device(0, true, pool), 0);
  std::uint64_t zero = 0, value = 0;
  ASSERT_EQ(set_pool_attribute(pool, used_high, &zero), 0);
  ASSERT_EQ(allocate_async(&address, MiB, stream.handle), 0);
  ASSERT_EQ(release_async(address, stream.handle), 0);
  ASSERT_EQ(pool_attribute(pool, used, &value), 0);
  EXPECT_EQ(value, 0u);
  ASSERT_EQ(pool_attribute(pool, used_high, &value), 0);
  EXPECT_EQ(value, MiB);
  ASSERT_EQ(pool_trim(pool, 0), 0);
  ASSERT_EQ(pool_attribute(pool, reserved, &value), 0);
  EXPECT_EQ(value, 0u);
}

TEST_F(Pools, TheDefaultPoolCannotBeDestroyedAndDestroyedOnesAreNoHandles) {
  void *pool = nullptr, *address = nullptr;
  ASSERT_EQ(pool_of_device(0, true, pool), 0);
  EXPECT_EQ(pool_destroy(pool), code::invalid_value);
  ASSERT_EQ(pool_create(pool, 0), 0);
  ASSERT_EQ(pool_destroy(pool), 0);
  EXPECT_FALSE(valid_pool(pool));
  EXPECT_EQ(allocate_from_pool(&address, 64, pool, nullptr), code::invalid_value);
  EXPECT_EQ(pool_of_device(99, true, pool), code::invalid_device);
}

TEST_F(VirtualMemory, IsUsableOnlyWhereItIsMapped) {
  std::uint64_t address = 0;
  void* physical = nullptr;
  EXPECT_EQ(reserve_addresses(mapping_granularity + 1, 0, address), code::invalid_value);
  ASSERT_EQ(reserve_addresses(2 * mapping_granularity, 0, address), 0);
  ASSERT_EQ(physical_create(mapping_granularity, 0, physical), 0);
  ASSERT_EQ(map_memory(address, mapping_granularity, physical), 0);
  EXPECT_TRUE(pointer(reinterpret_cast<void*>(address)).allocated);
  EXPECT_FALSE(pointer(reinterpret_cast<void*>(address + mapping_granularity)).allocated);
  ASSERT_EQ(unmap_memory(address, mapping_granularity), 0);
  EXPECT_EQ(unmap_memory(address, mapping_granularity), code::invalid_value);
  EXPECT_EQ(physical_release(physical), 0);
  EXPECT_EQ(free_addresses(address, 2 * mapping_granularity), 0);
}

TEST_F(VirtualMemory, AMappingKeepsPhysicalMemoryAfterItsRelease) {
  const std::uint64_t before = memory_used(0);
  std::uint64_t address = 0;
  void* physical = nullptr;
  ASSERT_EQ(reserve_addresses(mapping_granularity, 0, address), 0);
  ASSERT_EQ(physical_create(mapping_granularity, 0, physical), 0);
  ASSERT_EQ(map_memory(address, mapping_granularity, physical), 0);
  ASSERT_EQ(physical_release(physical), 0);
  EXPECT_TRUE(valid_physical(physical));
  EXPECT_GT(memory_used(0), before);
  ASSERT_EQ(unmap_memory(address, mapping_granularity), 0);
  EXPECT_FALSE(valid_physical(physical));
  EXPECT_EQ(memory_used(0), before);
  free_addresses(address, mapping_granularity);
}

TEST_F(SharedBetweenProcesses, MemoryIsExportedWholeAndNotChargedWhereItIsImported) {
  TestMemory memory(MiB);
  SharedMemory shared;
  int local = 0;
  EXPECT_EQ(export_memory(&local, shared), code::invalid_value);
  ASSERT_EQ(export_memory(static_cast<char*>(memory.address) + 4096, shared), 0);
  EXPECT_EQ(shared.address, reinterpret_cast<std::uint64_t>(memory.address));
  EXPECT_EQ(shared.bytes, MiB);
  const std::uint64_t before = memory_used(0);
  void* imported = nullptr;
  ASSERT_EQ(import_memory(shared, &imported), 0);
  EXPECT_NE(imported, memory.address);
  EXPECT_TRUE(pointer(imported).allocated);
  EXPECT_EQ(memory_used(0), before);
  EXPECT_EQ(close_imported(imported), 0);
  EXPECT_EQ(close_imported(imported), code::invalid_value);
}

}  // namespace
}  // namespace maya::session
