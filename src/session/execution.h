// Kernels run on known values (decode/execution.h), and host memory that kernels see.
#pragma once

#include <cstdint>

#include "decode/execution.h"
#include "session/objects.h"

namespace maya::session {

// Bytes from this address on that a kernel may touch: device memory, or pinned memory of the host,
// which has the same address on both sides. 0: nobody's.
std::uint64_t reachable(std::uint64_t address);

// The bytes there if they are known. Those of the host are.
const void* known_at(std::uint64_t address, std::uint64_t bytes);
bool possible_at(std::uint64_t address, std::uint64_t bytes);

// Whether some argument of a launch leads to pinned memory of the host.
bool meets_host_memory(const Function& function, void* const* arguments);

// A kernel that could not be run may write through a table of pointers in one of its arguments:
// forgets what is known behind each pointer in such a table.
void forget_behind_tables(const Function& function, void* const* arguments);

// Runs the launch and keeps what it wrote. False: it has to be treated like any other kernel.
bool run_on_values(const Function& function, const decode::Launch& launch);

}  // namespace maya::session
