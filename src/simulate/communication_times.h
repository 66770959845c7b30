// Durations of the communication calls of one class. The network model is called once per distinct
// call.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "maya/network.h"
#include "simulate/meetings.h"
#include "simulate/model.h"

namespace maya::simulate {

// The members of a communication: GPUs of the job in communicator order. `alike` are the
// communicators that behave like this one, including itself; the slowest one determines the time.
struct Members {
  std::span<const std::int32_t> placement;  // empty: not known
  std::int32_t here{};
  std::span<const std::span<const std::int32_t>> alike;
  bool between_nodes{};
};
// The time of calls of one communicator that are launched together.
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

  // Index into the table, for calls of one communicator that are launched together.
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
