#pragma once

namespace maya::session {

// Finds out whether this process is a rank: before main, and again in a process that was forked
// into another program (start.h).
void attend_departure();

// This process ends with this code.
void leave_with(int code);

}  // namespace maya::session
