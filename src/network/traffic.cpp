#include "network/traffic.h"

#include <algorithm>
#include <map>

namespace maya::network {
namespace {

// Ranks grouped by island, as NCCL arranges its rings and trees.
std::vector<std::vector<std::int32_t>> by_island(const Topology& topology,
                                                 std::span<const std::int32_t> ranks) {
  std::vector<std::int32_t> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::vector<std::int32_t>> islands;
  for (std::int32_t rank : sorted) {
    if (islands.empty() || !topology.same_island(islands.back().back(), rank))
      islands.emplace_back();
    islands.back().push_back(rank);
  }
  return islands;
}

class Weights {
 public:
  explicit Weights(const Topology& topology) : topology_(topology) {}

  void inside(const std::vector<std::int32_t>& island, double weight) {
    if (island.size() < 2) return;
    for (std::int32_t rank : island)
      add(topology_.gpu_out(rank), weight), add(topology_.gpu_in(rank), weight);
  }
  // From every member of one island to its counterpart in another, because channels use all cards.
  void between(const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to,
               double weight) {
    std::size_t lanes = std::max(from.size(), to.size());
    std::vector<Use> path;
    for (std::size_t i = 0; i < lanes; ++i)
      topology_.route(from[i % from.size()], to[i % to.size()], weight / static_cast<double>(lanes),
                      path);
    for (const Use& use : path) add(use.link, use.weight);
  }
  std::vector<Use> take() const {
    std::vector<Use> uses;
    for (const auto& [link, weight] : sum_) uses.push_back({link, weight});
    return uses;
  }

 private:
  void add(int link, double weight) { sum_[link] += weight; }
  const Topology& topology_;
  std::map<int, double> sum_;
};

}  // namespace

std::vector<Use> traffic(const Topology& topology, CollectiveKind kind, std::string_view algorithm,
                         std::span<const std::int32_t> ranks) {
  auto islands = by_island(topology, ranks);
  double n = static_cast<double>(ranks.size());
  Weights weights(topology);
  if (n < 2) return {};
  bool twice = kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier;
  if (algorithm == "tree" || algorithm == "nvls_tree" || algorithm == "collnet_direct" ||
      algorithm == "collnet_chain") {
    bool nvls = algorithm == "nvls_tree";
    for (const auto& island : islands)
      weights.inside(island, nvls ? 1 + 1.0 / static_cast<double>(island.size()) : 2);
    // Two complementary binary trees of half the data each: island i's parent in one is i / 2.
    std::size_t count = islands.size();
    for (std::size_t i = 1; i < count; ++i) {
      for (bool mirrored : {false, true}) {
        std::size_t child = mirrored ? count - 1 - i : i;
        std::size_t parent = mirrored ? count - 1 - (i - 1) / 2 : (i - 1) / 2;
        weights.between(islands[child], islands[parent], 0.5);
        weights.between(islands[parent], islands[child], 0.5);
      }
    }
  } else if (algorithm == "nvls") {
    for (const auto& island : islands) weights.inside(island, twice ? 1 + 1 / n : 1);
  } else if (algorithm == "p2p" && kind == CollectiveKind::all_to_all) {
    for (const auto& a : islands) {
      weights.inside(a, (static_cast<double>(a.size()) - 1) / n);
      for (const auto& b : islands)
        if (&a != &b) weights.between(a, b, static_cast<double>(a.size() * b.size()) / n);
    }
  } else {
    // Ring, and algorithms that forward data in a chain.
    double share = twice ? 2 * (n - 1) / n
                   : kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter
                       ? (n - 1) / n
                       : 1;
    for (const auto& island : islands) weights.inside(island, share);
    if (islands.size() > 1)
      for (std::size_t i = 0; i < islands.size(); ++i)
        weights.between(islands[i], islands[(i + 1) % islands.size()], share);
  }
  return weights.take();
}

}  // namespace maya::network
