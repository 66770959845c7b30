// Host times of the steady steps, cleared of what the recording machine did to them.
#pragma once

#include <vector>

#include "maya/job.h"

namespace maya::collate {

// Host time a record carries, that of a long gap too.
std::uint64_t host_ns(const trace::Record& record);

// Recordings of the other ranks of a class.
using Twins = std::vector<const trace::Recording*>;

// The same call of every steady step costs the host the same, on every rank that does the same;
// what differs is the recording machine's doing: other ranks on the same cores, cold caches after a
// switch, interrupts. That only ever adds. So what a thread takes from one piece of work to the
// next becomes the lower eighth of what it was in the steady steps of all those ranks (of up to
// eight times, the least), where it was more. Work is matched thread by thread; a thread whose work
// differs between steps is left as it was. A step that was recorded only once is compared with
// itself: with places that have the same work around them. `twins`: by class.
//
// `settled`: the recording was made in virtual time and holds what the program's clock counted,
// which is cleared already. Then the median counts: the first steps know less than later ones.
void settle_host_times(job::Job& job, const std::vector<Twins>& twins, bool settled = false);

}  // namespace maya::collate
