// Removes disturbances of the recording machine from the host times of steady steps.
#pragma once

#include <vector>

#include "maya/job.h"

namespace maya::collate {

// Host time of a record in ns, also of a host_gap record.
std::uint64_t host_ns(const trace::Record& record);

// Recordings of the other ranks of a class.
using Twins = std::vector<const trace::Recording*>;

// The same call of every steady step takes the same host time, on every rank with identical work.
// Differences are disturbances of the recording machine: other ranks on the same cores, cold caches
// after a context switch, interrupts. They only ever add time. So the host time between two calls
// of a thread is reduced to the lower eighth of its values in the steady steps of all these ranks
// (the minimum if there are up to eight values). Calls are matched thread by thread, in the steps
// that have the same calls as most. A thread without such steps is not changed. A step with other
// calls and much more host time did something besides training and is no longer measured. If only
// one step was recorded, calls with the same surrounding calls are compared instead. `twins` is
// indexed by class.
//
// `settled`: the recording was made in virtual time and holds the host times that the program's
// clock counted. The program saw their sum, so each call gets their mean, without those that the
// clock recognized as something else (session/settled_time.h).
void settle_host_times(job::Job& job, const std::vector<Twins>& twins, bool settled = false);

}  // namespace maya::collate
