// How large NCCL's buffers are: its own sizes (catalog/network, [memory]), with the environment's
// NCCL_BUFFSIZE and its relatives.
#pragma once

#include <cstdint>

#include "maya/catalog.h"

namespace maya::nccl {

// Where the members of a communicator lie: how many share an NVLink or PCIe domain with this one.
struct Placement {
  int size{1}, inside{1};
};

struct BufferSizes {
  explicit BufferSizes(const catalog::Cluster& cluster);

  std::uint64_t rings(const Placement& p) const;
  std::uint64_t trees(const Placement& p) const;
  std::uint64_t switches(const Placement& p) const;
  std::uint64_t network_messages() const;
  std::uint64_t peer(bool sends) const;  // inside a machine
  bool has_switch_reduction{};

 private:
  std::uint64_t inside_receive_{}, inside_send_{}, network_{};
  std::uint64_t switch_step_{}, message_pool_{};
  std::uint64_t channels_{}, network_channels_{}, peer_channels_{}, switch_channels_{};
};

}  // namespace maya::nccl
