// Determines which calls meet: collectives by communicator and sequence number, messages by channel
// and order.
//
// The (class, slot) pairs that are members of the same communicator form a domain. In a folded job
// a domain represents many communicators that behave alike. The duration of a collective in a
// domain is that of its slowest communicator; the communicators differ only if the job was folded
// for another number of GPUs per node.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "maya/job.h"
#include "simulate/program.h"

namespace maya::simulate {

class Meetings {
 public:
  Meetings(const job::Job& job, int gpus_per_node);

  struct Domain {
    std::vector<std::uint32_t> communicators;  // one for each distinct placement
    std::uint32_t parties{};
    std::uint32_t calls{};                    // the largest number of calls of any party
    std::uint32_t begin{none}, finish{none};  // the first meetings; none with a single party
    std::int64_t number{};                    // number of the domain's first collective
    bool between_nodes{};
  };
  const Domain& domain(std::uint32_t rank_class, std::uint32_t slot) const {
    return domains_[domain_of_[rank_class][slot]];
  }
  std::uint32_t communicator(std::uint32_t rank_class, std::uint32_t slot) const {
    return communicator_of_[rank_class][slot];
  }
  // The channel of a class by slot and peer, or none.
  std::uint32_t channel(std::uint32_t rank_class, std::uint16_t slot, std::int32_t peer) const;
  // The meeting of the n-th message; none if the peer was not recorded.
  std::uint32_t message(std::uint32_t rank_class, std::uint32_t channel, bool send,
                        std::uint32_t n) const;

  std::vector<Meet> take_meets() { return std::move(meets_); }

 private:
  void find_domains(int gpus_per_node);
  void count_calls();
  void number_meets();

  const job::Job& job_;
  std::vector<std::vector<std::uint32_t>> communicator_of_, domain_of_;  // per class, per slot
  std::vector<std::vector<std::uint32_t>> calls_;                        // per class, per slot
  struct ChannelCount {
    std::uint32_t sends{}, receives{}, first{};
  };
  std::vector<std::vector<ChannelCount>> channels_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> channel_index_;
  std::vector<Domain> domains_;
  std::vector<Meet> meets_;
};

}  // namespace maya::simulate
