#include "shim/nccl/buffers.h"

#include <algorithm>
#include <cstdio>

#include "shim/nccl/buffer_sizes.h"
#include "shim/nccl/communicator.h"

namespace maya::nccl {
namespace {

// Ranks of a job fill machine after machine; so do members of a communicator whose ranks nobody
// said.
Placement placement(const Communicator& c) {
  const auto& settings = session::state().settings;
  const auto& cluster = settings.cluster;
  const int domain = std::max({1, cluster.gpus_per_node, cluster.nvlink_domain});
  Placement p{c.size, std::min(c.size, domain)};
  if (static_cast<int>(c.ranks.size()) == c.size && c.rank < c.size) {
    const int own = c.ranks[static_cast<std::size_t>(c.rank)] / domain;
    p.inside = static_cast<int>(
        std::count_if(c.ranks.begin(), c.ranks.end(), [&](int r) { return r / domain == own; }));
  }
  return p;
}

const BufferSizes& sizes() {
  static const auto* known = new BufferSizes(session::state().settings.cluster);
  return *known;
}

thread_local char failure[96] = "";

bool take(Communicator& c, std::uint64_t bytes) {
  if (bytes == 0) return true;
  void* address = nullptr;
  const int before = session::thread().device;
  session::thread().device = c.device;
  const int error = session::take(&address, bytes, device::MemoryKind::communicator);
  session::thread().device = before;
  if (error != 0) {
    std::snprintf(failure, sizeof failure, "Failed to CUDA malloc %llu bytes: out of memory",
                  static_cast<unsigned long long>(bytes));
    return false;
  }
  c.buffers.allocations.push_back(address);
  return true;
}

}  // namespace

const char* last_failure() { return failure; }

bool connect(Communicator& c, CollectiveKind kind) {
  if (c.size <= 1) return true;
  const Placement p = placement(c);
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather ||
      kind == CollectiveKind::scatter) {
    for (int peer = 0; peer < c.size; ++peer)
      if (peer != c.rank && (!connect(c, peer, true) || !connect(c, peer, false))) return false;
    return true;
  }
  Buffers& b = c.buffers;
  if (!b.rings && !take(c, sizes().rings(p))) return false;
  b.rings = true;
  if (kind != CollectiveKind::all_reduce) return true;
  if (!b.trees && !take(c, sizes().trees(p))) return false;
  b.trees = true;
  if (!b.switches && !take(c, sizes().switches(p))) return false;
  b.switches = true;
  return true;
}

bool connect(Communicator& c, int peer, bool sends) {
  if (peer == c.rank) return true;
  Buffers& b = c.buffers;
  std::set<int>& connected = sends ? b.sends_to : b.receives_from;
  if (!connected.insert(peer).second) return true;
  const auto& cluster = session::state().settings.cluster;
  const int domain = std::max({1, cluster.gpus_per_node, cluster.nvlink_domain});
  auto home = [&](int place) {
    const bool known = static_cast<int>(c.ranks.size()) == c.size;
    return (known ? c.ranks[static_cast<std::size_t>(place)] : place) / domain;
  };
  if (home(peer) == home(c.rank)) return take(c, sizes().peer(sends));
  if (b.network_messages) return true;
  b.network_messages = true;
  return take(c, sizes().network_messages());
}

void disconnect(Communicator& c) {
  for (void* address : c.buffers.allocations) session::release(address);
  c.buffers = {};
}

}  // namespace maya::nccl
