// This process as a member of a run: while it lives, nobody else may use the run's directory.
#pragma once

#include <string_view>

namespace maya::session {

// Holds the lock of the run that MAYA_RUN_DIR names. A process does so when it starts; one that is
// told later which run it belongs to (session/start) does it again.
void join_run();
// This process is not of the run any more: its directory may be used again without it.
void leave_run();

// This process has written a file of that name into the run directory: the next run there may
// remove it. The launcher writes the first line of the list (launch/run_directory).
void list_in_manifest(std::string_view name);

}  // namespace maya::session
