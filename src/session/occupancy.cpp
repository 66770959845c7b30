// What a kernel needs of a multiprocessor, and how much of it fits there: one answer for the
// runtime's and the driver's entry points, whose attribute numbers agree.
#include <algorithm>

#include "session/calls.h"

namespace maya::session {
namespace {

constexpr int last_attribute = 15;
constexpr int max_dynamic_shared = 8, carveout = 9, first_cluster = 10;
constexpr int shared_without_asking = 48 << 10;

}  // namespace

int kernel_attributes(void* handle, KernelAttributes& a) {
  Function* found = find_function(handle);
  if (found == nullptr) return code::invalid_handle;
  if (int error = resolve(*found)) return error;
  const Function& function = *found;
  const auto& kernel = function.code;
  a.static_shared = static_cast<int>(kernel.static_shared);
  a.local_bytes = static_cast<int>(kernel.local_bytes);
  a.registers = kernel.registers;
  a.max_threads = kernel.max_threads ? static_cast<int>(kernel.max_threads) : 1024;
  if (kernel.registers > 0)  // the whole block must fit the register file, in warps
    a.max_threads = std::min(a.max_threads, 65536 / ((kernel.registers + 7) / 8 * 8) / 32 * 32);
  const int device = gpu().capability_major * 10 + gpu().capability_minor;
  a.ptx_version = kernel.ptx_version > 0 ? kernel.ptx_version : device;
  a.binary_version = kernel.binary_version > 0 ? kernel.binary_version : device;
  a.max_dynamic_shared = function.max_dynamic_shared
                             ? function.max_dynamic_shared
                             : std::max(0, shared_without_asking - a.static_shared);
  a.carveout = function.carveout;
  return code::success;
}

int set_kernel_attribute(void* handle, int attribute, int value) {
  Function* found = find_function(handle);
  if (found == nullptr) return code::invalid_handle;
  if (int error = resolve(*found)) return error;
  Function& function = *found;
  if (attribute == max_dynamic_shared) {
    if (value < 0 || value + static_cast<std::int64_t>(function.code.static_shared) >
                         gpu().shared_per_block_optin)
      return code::invalid_value;
    function.max_dynamic_shared = value;
    return code::success;
  }
  if (attribute == carveout) {
    function.carveout = value;
    return code::success;
  }
  bool cluster = attribute >= first_cluster && attribute <= last_attribute;
  return cluster && gpu().capability_major >= 9 ? code::success : code::invalid_value;
}

// Blocks per multiprocessor, limited by threads, registers, shared memory and the hardware's
// maximum.
int occupancy(void* handle, int block_threads, std::uint64_t dynamic_shared, int& blocks) {
  Function* found = find_function(handle);
  if (found == nullptr) return code::invalid_handle;
  if (int error = resolve(*found)) return error;
  const Function& function = *found;
  if (block_threads <= 0) return code::invalid_value;
  const auto& gpu = state().settings.cluster.gpu;
  auto round_up = [](std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; };
  std::uint64_t warps = (static_cast<std::uint64_t>(block_threads) + 31) / 32;
  std::uint64_t limit = static_cast<std::uint64_t>(gpu.max_blocks_per_sm);
  limit = std::min(limit, static_cast<std::uint64_t>(gpu.max_threads_per_sm) / (warps * 32));
  if (function.code.registers > 0 && gpu.registers_per_sm > 0) {
    // Registers are given to a warp in units of 256, warps to one of four partitions.
    std::uint64_t per_warp = round_up(std::uint64_t{function.code.registers} * 32, 256);
    std::uint64_t warps_per_sm =
        static_cast<std::uint64_t>(gpu.registers_per_sm) / 4 / per_warp * 4;
    limit = std::min(limit, warps_per_sm / round_up(warps, 1));
  }
  std::uint64_t reserved = gpu.capability_major >= 8 ? 1024 : 0;  // per block, for the system
  std::uint64_t shared = function.code.static_shared + dynamic_shared;
  if (shared > 0 || reserved > 0) {
    std::uint64_t per_block = round_up(shared + reserved, gpu.capability_major >= 8 ? 128 : 256);
    if (gpu.shared_per_sm > 0)
      limit = std::min(limit, static_cast<std::uint64_t>(gpu.shared_per_sm) /
                                  std::max<std::uint64_t>(per_block, 1));
  }
  blocks = static_cast<int>(limit);
  return code::success;
}

// Clusters of thread blocks: as many as their blocks fit on the multiprocessors.
int active_clusters(void* function, int block_threads, std::uint64_t dynamic_shared,
                    unsigned blocks_per_cluster, int& clusters) {
  int blocks = 0;
  clusters = 0;
  if (int error = occupancy(function, block_threads, dynamic_shared, blocks)) return error;
  clusters = blocks * gpu().sms / static_cast<int>(std::max(1u, blocks_per_cluster));
  return code::success;
}

int largest_cluster() { return gpu().capability_major >= 9 ? 8 : 1; }

}  // namespace maya::session
