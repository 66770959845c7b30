// A summary of one rank's recording for comparison with other ranks: a hash of its op stream, the
// calls on each of its communicators, and its point-to-point channels. Computed in one pass.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "maya/result.h"
#include "maya/trace.h"

namespace maya::collate {

// Calls on one communicator, in order.
struct CollectiveUse {
  std::uint32_t count{};
  std::uint64_t hash{};  // of kinds, sizes and roots, which must be the same on all members
};

// Messages to and from one peer on one communicator. Channels are numbered in order of first use.
struct ChannelUse {
  std::uint16_t slot{};
  std::int32_t peer{};
  std::uint32_t sends{}, receives{};
  std::uint64_t send_hash{}, receive_hash{};  // of the bytes, in order
};

struct Fingerprint {
  // Equal for ranks that do identical work. Host times, annotations, the interleaving of threads,
  // ids of events and peers of messages are not included.
  std::uint64_t hash{};
  std::int32_t devices{1};                 // number of GPUs that the process uses
  std::vector<CollectiveUse> collectives;  // by slot
  std::vector<ChannelUse> channels;
  std::unordered_map<std::uint64_t, std::uint32_t> channel_number;  // by slot and peer

  // Index into channels, or 0xffffffff.
  std::uint32_t channel(std::uint32_t slot, std::int32_t peer) const {
    auto it = channel_number.find(std::uint64_t{slot} << 32 | static_cast<std::uint32_t>(peer));
    return it == channel_number.end() ? 0xffffffff : it->second;
  }
};

// Also checks that every index in the recording is within its table. Later passes rely on it.
Result<Fingerprint> fingerprint(const trace::Recording& recording);

// The calls on one slot in order of their sequence numbers, with graph launches expanded.
struct CommunicatorCall {
  std::uint32_t record{}, op{};
};
std::vector<CommunicatorCall> collective_calls(const trace::Recording& recording,
                                               std::uint16_t slot);
std::vector<CommunicatorCall> message_calls(const trace::Recording& recording, std::uint16_t slot,
                                            std::int32_t peer, bool send);

}  // namespace maya::collate
