// Starts of Python programs by fork: `maya run` may name a directory (MAYA_START_DIR) whose
// templates, processes that have imported torch already, fork into the programs of the job. A start
// of a Python interpreter then becomes one of maya-start (src/cli/start), which asks a template.
#pragma once

#include "session/exec.h"

namespace maya::session {

// Puts maya-start in the interpreter's place.
void start_by_fork(Start& start);

// Whether this process is a template.
bool is_template();

}  // namespace maya::session
