// Which ranks make up each communicator, and whether their calls fit together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collate/fingerprint.h"
#include "maya/job.h"
#include "maya/result.h"

namespace maya::collate {

// One recorded rank.
struct Member {
  const trace::Recording* recording{};
  Fingerprint print;
  std::vector<std::uint32_t> communicator;  // slot → index into the job's communicators
};

class Grid;

// Fills Member::communicator. Members that were not recorded are -1. `members` stand in ascending
// rank order.
Result<std::vector<job::Communicator>> match_communicators(std::vector<Member>& members,
                                                           std::int32_t world_size);

// Finds the members that were not recorded: by the grid if there is one, else by the stride of
// those that were, with a note where that does not fit.
void place_members(std::vector<job::Communicator>& communicators, const Grid* grid,
                   std::int32_t world_size, std::vector<std::string>& notes);

// Every collective has the same kind, size and root on all members at each sequence number; every
// message has its counterpart. Where a recording is cut off its missing end is a note, not an
// error.
Status check_calls(std::span<const Member> members,
                   std::span<const job::Communicator> communicators,
                   std::vector<std::string>& notes);

// Index of the recorded member with that rank, or -1.
int find_member(std::span<const Member> members, std::int32_t rank);

}  // namespace maya::collate
