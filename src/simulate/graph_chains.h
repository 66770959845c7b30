// Divides the nodes of a graph into chains. The nodes of a chain run one after the other; an edge
// between two chains becomes a wait.
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
  std::vector<ChainEntry> entries;  // ordered so that every record precedes its waits
  std::uint32_t chains{};
  std::uint32_t tickets{};
  std::uint32_t last_node_of_first{0xffffffff};  // work that frees the launch's place in the queue
};

// Chain 0 runs on the stream that the graph is launched on.
GraphChains lay_out(const trace::Graph& graph);

}  // namespace maya::simulate
