#include "shim/nccl/buffer_sizes.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace maya::nccl {
namespace {

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  return end == text ? otherwise : value;
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return to == 0 ? bytes : (bytes + to - 1) / to * to;
}

}  // namespace

BufferSizes::BufferSizes(const catalog::Cluster& cluster) {
  auto number = [&](const std::string& key) {
    auto found = cluster.extra.find("memory." + key);
    return found == cluster.extra.end() ? std::uint64_t{0}
                                        : static_cast<std::uint64_t>(found->second);
  };
  const std::uint64_t page = number("page_bytes");
  const std::uint64_t simple = environment("NCCL_BUFFSIZE", number("simple_bytes")),
                      ll = environment("NCCL_LL_BUFFSIZE", number("ll_bytes")),
                      ll128 = environment("NCCL_LL128_BUFFSIZE", number("ll128_bytes"));
  // The receiver has the buffers; the sender a page of counters.
  inside_receive_ = round_up(ll + ll128 + simple, page);
  inside_send_ = page;
  network_ = round_up(ll128 + simple, page);  // on both sides; LL goes through the host
  const bool nvlink = cluster.intra.name.find("nvlink") != std::string::npos || cluster.nvswitch;
  const std::string wire = nvlink ? "nvlink" : "pcie";
  const std::uint64_t most = environment("NCCL_MAX_NCHANNELS", 64),
                      least = environment("NCCL_MIN_NCHANNELS", 1);
  auto channels = [&](std::uint64_t planned) {
    return std::clamp(planned, std::min(least, most), std::max<std::uint64_t>(1, most));
  };
  channels_ = channels(number("channels." + wire));
  network_channels_ = channels(number("channels.network"));
  peer_channels_ = number("channels.peer_" + wire);
  switch_channels_ = number("channels.switch");
  switch_step_ = number("switch_bytes");
  message_pool_ = number("message_pool_bytes");
  has_switch_reduction = cluster.nvls && environment("NCCL_NVLS_ENABLE", 1) != 0;
}

// One receive and one send connection a channel; a ring through several machines enters and leaves
// each of them once a channel.
std::uint64_t BufferSizes::rings(const Placement& p) const {
  if (p.size <= p.inside) return channels_ * (inside_receive_ + inside_send_);
  if (p.inside <= 1) return network_channels_ * 2 * network_;
  return network_channels_ * (inside_receive_ + inside_send_) +
         network_channels_ * 2 * network_ / static_cast<std::uint64_t>(p.inside);
}

// Inside a machine a tree is a chain, and one of its two neighbours is the ring's.
std::uint64_t BufferSizes::trees(const Placement& p) const {
  if (p.size <= p.inside || p.size <= 2) return 0;
  return p.inside > 1 ? network_channels_ * (inside_receive_ + inside_send_)
                      : network_channels_ * 2 * network_;
}

std::uint64_t BufferSizes::switches(const Placement& p) const {
  if (!has_switch_reduction || p.inside <= 2) return 0;
  return switch_channels_ * 2 * switch_step_ * static_cast<std::uint64_t>(p.inside);
}

std::uint64_t BufferSizes::network_messages() const { return 2 * message_pool_; }

std::uint64_t BufferSizes::peer(bool sends) const {
  return peer_channels_ * (sends ? inside_send_ : inside_receive_);
}

}  // namespace maya::nccl
