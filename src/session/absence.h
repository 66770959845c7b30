// Jobs of which only some ranks run (`maya run --ranks`): MAYA_RANKS lists them, "0,1,8".
//
// Under a launcher we understand only those are started, and before main each is given its place in
// the whole job (launchers/workers.h). Under any other all are started, and a process of another
// rank never begins its program: it waits, before main, for those that run and then ends well, so
// that the launcher is content. What an absent rank would have told its peers is taken to be what
// they say themselves (values/exchange.h); what it would have done is taken from a recorded rank
// (collate).
#pragma once

#include "session/machine.h"  // ranks_that_run

namespace maya::session {

// Set for a launcher of a node whose ranks another one starts: it waits as a rank would.
inline constexpr const char* away_variable = "MAYA_AWAY";

// Takes this process's place in the job, as its environment tells it: before main, and again in a
// process that was forked into another program (start.h).
void attend_job();

// Under a launcher that was asked for the ranks that run and counts them from 0: corrects the
// environment. Before main, and once.
void take_place();

// Whether this process is the one that the launcher started as a rank. What that one starts or
// forks (workers of a data loader, compilers) has its environment and is not the rank.
bool owns_rank();

// Tells the processes that wait that this rank is done. For ends that skip exit handlers.
void leave_job();

}  // namespace maya::session
