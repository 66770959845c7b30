// How a command failed: where its ranks were, what memory they used, and which steps all of them
// completed.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/collate.h"
#include "maya/report.h"
#include "report/memory.h"

namespace maya::report {

struct RankEnding {
  std::int32_t rank{};
  collate::Progress progress;  // when it ran out of memory, else at the end of its recording
  MemoryUse memory;
  std::vector<MemoryPart> parts;  // the memory in use when it ran out of memory
  std::int64_t forward_bytes{};   // estimated memory of the whole forward pass; 0: unknown
};

struct Ending {
  int exit_code{};
  std::uint32_t whole_steps{};  // training steps that every rank completed
  bool killed{};                // a recording was not closed
  std::vector<RankEnding> ranks;

  const RankEnding* find(std::int32_t rank) const;
  // The rank that made the least progress or, if ranks ran out of memory, the first of these.
  const RankEnding* first() const;
};

Ending ending_of(const std::vector<trace::Recording>& recordings, const collate::Training& training,
                 int exit_code);

// Keeps the steps that every rank completed.
void keep_common_steps(std::vector<trace::Recording>& recordings,
                       const collate::Training& training);

// "Does not fit: rank 3 asked for 2.1 GiB with …, in the first forward pass"
std::string headline(const OutOfMemory& out_of_memory);
std::string headline(const Ending& ending);

// Further lines of the summary after running out of memory: how much is missing, and what was in
// use.
std::vector<std::string> explanation(const OutOfMemory& out_of_memory);

}  // namespace maya::report
