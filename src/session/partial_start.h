// Launchers that a script starts (torchrun inside run_train.sh) in a job of which only some ranks
// run: they are asked for those ranks alone, as `maya run` asks a launcher it starts itself
// (launchers/workers.h).
#pragma once

#include "session/exec.h"

namespace maya::session {

void start_some_ranks(Start& start);

}  // namespace maya::session
