// A thread of ours in somebody else's process.
#pragma once

namespace maya::session {

// Detached, with all signals blocked: none of the program's is handled by it.
bool start_quiet_thread(void* (*body)(void*));

}  // namespace maya::session
