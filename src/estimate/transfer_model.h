// Copies that leave the GPU: over PCIe from pinned or pageable host memory, or to a peer.
#pragma once

#include "estimate/chip.h"
#include "maya/op.h"

namespace maya::estimate {

struct TransferParams {
  double latency_ns{1500};  // DMA start
  double efficiency{0.82};  // of the data sheet's PCIe rate, pinned
  double pageable_latency_ns{4000};
  double pageable_gbps{7};    // staging through the driver's pinned buffer: a host memcpy
  double small_bytes{65536};  // pageable copies up to this size travel inside the command
  double peer_efficiency{0.8};
  double host_gbps{10};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("latency_ns", s.latency_ns), f("efficiency", s.efficiency);
    f("pageable_latency_ns", s.pageable_latency_ns), f("pageable_gbps", s.pageable_gbps);
    f("small_bytes", s.small_bytes), f("peer_efficiency", s.peer_efficiency);
    f("host_gbps", s.host_gbps);
  }
};

inline double transfer_time(const Chip& chip, const Copy& w, const TransferParams& p) {
  const double bytes = static_cast<double>(w.bytes);
  const double link = chip.pcie * p.efficiency;
  switch (w.direction) {
    case CopyDirection::peer:
      return p.latency_ns +
             bytes / ((chip.nvlink > 0 ? chip.nvlink : chip.pcie) * p.peer_efficiency);
    case CopyDirection::host:
      return bytes / p.host_gbps;
    default:
      break;
  }
  if (w.pinned || bytes <= p.small_bytes) return p.latency_ns + bytes / link;
  return p.pageable_latency_ns + bytes / (link < p.pageable_gbps ? link : p.pageable_gbps);
}

}  // namespace maya::estimate
