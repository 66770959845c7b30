// The memory of a rank over time and at its peak, by purpose.
//
// The blocks that PyTorch's allocator hands out are recorded with --stacks, and if only some ranks
// run. The purpose of a block is derived from when it was allocated and released, and by which
// thread:
//
//   before the first step, and kept             parameters (and buffers of the model)
//   in a forward pass, outliving it             activations
//   in a backward pass, outliving it            gradients
//   after the last backward pass, and kept      optimizer state
//   by code of torch.distributed                communication
//   anything else                               temporary
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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
  cached,         // reserved but not handed out: the allocator's cache, fragmentation
  program,        // if blocks are not recorded: all allocations of the program
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
  bool detailed{};                  // blocks were recorded
  bool by_order{};                  // nothing was simulated: `us` is the number of the record
  std::vector<MemoryPoint> points;  // at most a few hundred; peaks are kept
  MemoryPoint peak;
  std::uint32_t peak_record{};
  bool refused{};                     // `peak` is where an allocation failed
  std::vector<MemoryHolder> holders;  // at the peak, the largest first
  // The same by module and by line (file, number), of whatever kind.
  std::map<std::string, std::int64_t> modules;
  std::map<std::pair<std::string, int>, std::int64_t> lines;
};

// A change of the program that affects its memory.
struct MemoryChange {
  double batch{1};   // the micro-batch, relative to the recorded one
  bool recompute{};  // blocks (modules with a number in their path) keep only their output
};

// The peak of a class with the change, by replaying its allocations. Whatever is as large as a
// parameter is taken for its gradient and does not depend on the micro-batch. 0: not known (blocks
// of memory were not recorded; or no module has a number).
std::int64_t peak_with(const MemoryChange& change, const job::Job& job, std::size_t rank_class,
                       const catalog::Gpu& gpu, const Places& places);

// One for each class.
std::vector<MemoryProfile> memory_profiles(const job::Job& job, const simulate::Timeline& timeline,
                                           const catalog::Gpu& gpu,
                                           const std::vector<Places>& places);

// A snapshot in the format of torch.cuda.memory._dump_snapshot() for pytorch.org/memory_viz, as the
// bytes of a pickle. An error if blocks were not recorded.
Result<std::string> memory_snapshot(const job::RankClass& rank_class, const Places& places);

}  // namespace maya::report
