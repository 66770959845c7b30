// Device memory that NCCL takes for a communicator.
//
// NCCL connects to a peer when it first needs it, one connection a channel, each with a buffer per
// protocol. So the memory of a communicator grows with what it is used for: rings for collectives,
// trees for all-reduce across machines, the switch's buffers for all-reduce inside one, and a set
// of channels for every peer of sends and receives.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "maya/op.h"

namespace maya::nccl {

struct Communicator;

// What a communicator holds so far.
struct Buffers {
  bool rings{}, trees{}, switches{}, network_messages{};
  std::set<int> sends_to, receives_from;
  std::vector<void*> allocations;
};

// Takes what the call needs and the communicator does not have yet. False: the device is full.
bool connect(Communicator& communicator, CollectiveKind kind);
bool connect(Communicator& communicator, int peer, bool sends);
void release(const Buffers& buffers);
// Why the calling thread's last connection failed, for ncclGetLastError; "" if none did.
const char* last_failure();

}  // namespace maya::nccl
