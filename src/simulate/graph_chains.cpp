#include "simulate/graph_chains.h"

namespace maya::simulate {
namespace {

bool is_work(trace::Kind kind) {
  using trace::Kind;
  return kind == Kind::launch || kind == Kind::copy || kind == Kind::fill ||
         kind == Kind::collective || kind == Kind::point_to_point || kind == Kind::host_function;
}

}  // namespace

GraphChains lay_out(const trace::Graph& graph) {
  constexpr std::uint32_t none = 0xffffffff;
  GraphChains result;
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  // A node continues the chain of its first predecessor that is still the end of a chain.
  std::vector<std::uint32_t> chain(count, none), tail;
  std::vector<bool> observed(count, false);  // a node of another chain waits for it
  for (std::uint32_t n = 0; n < count; ++n) {
    for (std::uint32_t before : graph.nodes[n].after)
      if (tail[chain[before]] == before) {
        chain[n] = chain[before];
        break;
      }
    if (chain[n] == none) {
      chain[n] = static_cast<std::uint32_t>(tail.size());
      tail.push_back(n);
    }
    tail[chain[n]] = n;
    for (std::uint32_t before : graph.nodes[n].after)
      if (chain[before] != chain[n]) observed[before] = true;
  }
  std::vector<std::uint32_t> ticket(count, none);
  for (std::uint32_t n = 0; n < count; ++n) {
    using What = ChainEntry::What;
    for (std::uint32_t before : graph.nodes[n].after)
      if (chain[before] != chain[n])
        result.entries.push_back({What::wait, chain[n], ticket[before]});
    result.entries.push_back({What::node, chain[n], n});
    if (observed[n]) {
      ticket[n] = result.tickets++;
      result.entries.push_back({What::record, chain[n], ticket[n]});
    }
    if (chain[n] == 0 && is_work(graph.nodes[n].record.kind)) result.last_node_of_first = n;
  }
  result.chains = static_cast<std::uint32_t>(tail.size());
  return result;
}

}  // namespace maya::simulate
