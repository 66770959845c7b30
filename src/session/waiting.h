// A rank that waits for long says where.
#pragma once

namespace maya::session {

// Starts the thread that watches, once, in a job of several ranks.
void report_long_waits();

}  // namespace maya::session
