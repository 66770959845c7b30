// Matches the communicators of the ranks and checks that their calls agree.
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

// Fills Member::communicator and returns the communicators of the job, in which the rank of a
// member that was not recorded is -1. `members` are in ascending order of rank.
Result<std::vector<job::Communicator>> match_communicators(std::vector<Member>& members,
                                                           std::int32_t world_size);

// Determines the ranks of members that were not recorded: from the grid if there is one, else from
// the stride between recorded members. Adds a note if the recorded members have no common stride.
void place_members(std::vector<job::Communicator>& communicators, const Grid* grid,
                   std::int32_t world_size, std::vector<std::string>& notes);

// Checks that at each sequence number all members call the same collective with the same size and
// root, and that every send has a matching receive. If a recording ends early (crash, kill), its
// missing end is a note and not an error.
Status check_calls(std::span<const Member> members,
                   std::span<const job::Communicator> communicators,
                   std::vector<std::string>& notes);

// Index of the recorded member with that rank, or -1.
int find_member(std::span<const Member> members, std::int32_t rank);

}  // namespace maya::collate
