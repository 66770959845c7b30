// A graph's nodes laid out on chains: sequences that run one after the other, with waits between
// them where the graph has an edge from one chain to another.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/trace.h"

namespace maya::simulate {

struct ChainEntry {
  enum class What : std::uint8_t { node, record, wait } what{};
  std::uint32_t chain{};
  std::uint32_t index{};  // node, or local number of the ticket
};

struct GraphChains {
  std::vector<ChainEntry> entries;  // in an order in which every record precedes its waits
  std::uint32_t chains{};
  std::uint32_t tickets{};
  std::uint32_t last_node_of_first{0xffffffff};  // work that frees the launch's place in the queue
};

// Chain 0 runs on the stream the graph is launched to.
GraphChains lay_out(const trace::Graph& graph);

}  // namespace maya::simulate
