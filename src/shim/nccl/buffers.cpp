#include "shim/nccl/buffers.h"

#include <algorithm>
#include <cstdio>

#include "session/machine.h"
#include "shim/nccl/buffer_sizes.h"
#include "shim/nccl/communicator.h"

namespace maya::nccl {
namespace {

// Ranks of a job fill machine after machine; so do members of a communicator whose ranks nobody
// said.
Placement placement(const session::Membership& c) {
  const auto& cluster = session::cluster();
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
  static const auto* known = new BufferSizes(session::cluster());
  return *known;
}

thread_local char failure[96] = "";

bool take(Communicator& c, std::uint64_t bytes) {
  if (bytes == 0) return true;
  void* address = nullptr;
  const int before = session::current_device();
  session::use_device(session::communicator_device(c.handle));
  const int error = session::take(&address, bytes, session::MemoryKind::communicator);
  session::use_device(before);
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
  const session::Membership& m = c.membership();
  if (m.size <= 1) return true;
  const Placement p = placement(m);
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather ||
      kind == CollectiveKind::scatter) {
    for (int peer = 0; peer < m.size; ++peer)
      if (peer != m.rank && (!connect(c, peer, true) || !connect(c, peer, false))) return false;
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
  const session::Membership& m = c.membership();
  if (peer == m.rank) return true;
  Buffers& b = c.buffers;
  std::set<int>& connected = sends ? b.sends_to : b.receives_from;
  if (!connected.insert(peer).second) return true;
  const auto& cluster = session::cluster();
  const int domain = std::max({1, cluster.gpus_per_node, cluster.nvlink_domain});
  auto home = [&](int place) {
    const bool known = static_cast<int>(m.ranks.size()) == m.size;
    return (known ? m.ranks[static_cast<std::size_t>(place)] : place) / domain;
  };
  if (home(peer) == home(m.rank)) return take(c, sizes().peer(sends));
  if (b.network_messages) return true;
  b.network_messages = true;
  return take(c, sizes().network_messages());
}

void release(const Buffers& buffers) {
  for (void* address : buffers.allocations) session::release(address);
}

}  // namespace maya::nccl
