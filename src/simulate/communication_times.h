// Durations of communication calls of one class: asked of the network once per distinct call.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "maya/network.h"
#include "simulate/meetings.h"
#include "simulate/model.h"

namespace maya::simulate {

// Who takes part in a communication, seen from one member: GPUs of the job in the communicator's
// order. `alike`: the communicators that behave as this one does, itself among them; the slowest
// counts.
struct Members {
  std::span<const std::int32_t> placement;  // empty: not known
  std::int32_t here{};
  std::span<const std::span<const std::int32_t>> alike;
  bool between_nodes{};
};
// Calls of one communicator that are launched together.
CommunicationTime communication_time(std::span<const Work* const> works, const Members& members,
                                     const network::Network& network, const Model& model);

class CommunicationTimes {
 public:
  CommunicationTimes(const job::Job& job, std::uint32_t rank_class, const Meetings& meetings,
                     const network::Network& network, const Model& model,
                     std::vector<CommunicationTime>& table)
      : job_(job),
        class_(rank_class),
        meetings_(meetings),
        network_(network),
        model_(model),
        table_(table) {}

  // Calls of one communicator that are launched together. Index into the table.
  std::uint32_t of(std::uint16_t slot, std::span<const std::uint32_t> ops);

 private:
  CommunicationTime evaluate(std::uint16_t slot, std::span<const std::uint32_t> ops) const;

  const job::Job& job_;
  std::uint32_t class_;
  const Meetings& meetings_;
  const network::Network& network_;
  const Model& model_;
  std::vector<CommunicationTime>& table_;
  std::unordered_map<std::uint64_t, std::uint32_t> single_;  // slot, op
  std::unordered_map<std::string, std::uint32_t> fused_;     // slot, ops
};

}  // namespace maya::simulate
