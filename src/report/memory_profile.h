// What fills the memory of a rank over its recording, and at its fullest.
//
// With the pieces that PyTorch's allocator hands out (recorded with --stacks, and where some ranks
// run for all), memory is told apart by what it was allocated for. Which that is follows from when
// a piece was allocated, by whom, and who released it:
//
//   before the first step, and kept             parameters (and buffers of the model)
//   in a forward pass, outliving it             activations
//   in a backward pass, outliving it            gradients
//   behind the last backward pass, and kept     optimizer state
//   by code of torch.distributed                communication
//   anything else                               temporary
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "maya/catalog.h"
#include "maya/job.h"
#include "maya/simulate.h"
#include "report/places.h"

namespace maya::report {

enum class Holds : std::uint8_t {
  parameters,
  gradients,
  optimizer_state,
  activations,
  temporary,
  communication,  // buffers of torch.distributed and of NCCL
  cached,         // taken from the device and not handed out: the allocator's cache, fragmentation
  program,        // where pieces are not known: all that the program took
  context,
};
inline constexpr std::size_t kinds_of_memory = 9;
std::string_view name(Holds kind);

using Amounts = std::array<std::int64_t, kinds_of_memory>;

struct MemoryPoint {
  double us{};  // since the beginning of the simulated run
  Amounts bytes{};
};

struct MemoryHolder {
  Holds kind{};
  std::string who;  // a module, else a line
  std::int64_t bytes{};
};

struct MemoryProfile {
  std::vector<std::int32_t> ranks;
  std::int64_t capacity_bytes{};
  bool detailed{};                  // pieces are known
  bool by_order{};                  // nothing was simulated: `us` counts records
  std::vector<MemoryPoint> points;  // at most a few hundred, peaks kept
  MemoryPoint peak;
  bool refused{};                     // `peak` is where the emulated GPU refused an allocation
  std::vector<MemoryHolder> holders;  // at the peak, the largest first
};

// One for each class.
std::vector<MemoryProfile> memory_profiles(const job::Job& job, const simulate::Timeline& timeline,
                                           const catalog::Gpu& gpu,
                                           const std::vector<Places>& places);

// What torch.cuda.memory._dump_snapshot() writes, for pytorch.org/memory_viz: the bytes of a
// pickle. Of the class's allocations by piece; an error where they were not recorded.
Result<std::string> memory_snapshot(const job::RankClass& rank_class, const Places& places);

}  // namespace maya::report
