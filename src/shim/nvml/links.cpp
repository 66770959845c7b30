// NVLink, peer access, topology and fabric, from the cluster's description.
#include <cstring>

#include "shim/nvml/device.h"

using namespace maya::abi;
using namespace maya::shim::nvml;
namespace session = maya::session;

namespace {

bool link_exists(unsigned link) {
  return has_nvlink() && link < static_cast<unsigned>(session::gpu().nvlink_links);
}

// NVLink generations follow the architectures: 1 Pascal, 2 Volta, 3 Ampere, 4 Hopper, 5 Blackwell.
unsigned nvlink_version() {
  switch (session::gpu().capability_major) {
    case 6:
      return 1;
    case 7:
      return 2;
    case 8:
      return 3;
    case 9:
      return 4;
    default:
      return 5;
  }
}

// Without a switch the links of a GPU are dealt round its peers.
int peer_of(int index, unsigned link) {
  int others = count() - 1;
  int step = static_cast<int>(link) % others;
  return step < index ? step : step + 1;
}

template <class Info>
nvmlReturn_t fabric(nvmlDevice_t device, Info* info) {
  if (index_of(device) < 0 || !info) return NVML_ERROR_INVALID_ARGUMENT;
  std::memset(info->clusterUuid, 0, sizeof info->clusterUuid);
  info->cliqueId = 0;
  const auto& cluster = session::cluster();
  // A domain larger than the node (NVL72) has a fabric of its own; else there is nothing to
  // register with.
  bool multi_node = cluster.nvlink_domain > cluster.gpus_per_node;
  bool switched = has_nvswitch() && session::gpu().capability_major >= 9;
  info->state = static_cast<unsigned char>(switched ? NVML_GPU_FABRIC_STATE_COMPLETED
                                                    : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
  info->status = NVML_SUCCESS;
  if (multi_node) std::memcpy(info->clusterUuid, "MayaEmulatedNVL0", sizeof info->clusterUuid);
  // Also without one the call succeeds: PyTorch 2.11 to 2.13 with expandable segments demand it.
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
                                      nvmlEnableState_t* state) {
  if (index_of(device) < 0 || !state || link >= kNvlinkMaxLinks) return NVML_ERROR_INVALID_ARGUMENT;
  if (!has_nvlink()) return NVML_ERROR_NOT_SUPPORTED;
  *state = link_exists(link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned* version) {
  if (index_of(device) < 0 || !version || link >= kNvlinkMaxLinks)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (!link_exists(link)) return NVML_ERROR_NOT_SUPPORTED;
  *version = nvlink_version();
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link,
                                           nvmlNvLinkCapability_t, unsigned* value) {
  if (index_of(device) < 0 || !value || link >= kNvlinkMaxLinks) return NVML_ERROR_INVALID_ARGUMENT;
  if (!link_exists(link)) return NVML_ERROR_NOT_SUPPORTED;
  *value = 1;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link,
                                                 nvmlIntNvLinkDeviceType_t* type) {
  if (index_of(device) < 0 || !type || link >= kNvlinkMaxLinks) return NVML_ERROR_INVALID_ARGUMENT;
  if (!link_exists(link)) return NVML_ERROR_NOT_SUPPORTED;
  *type = has_nvswitch() ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                 nvmlPciInfo_t* info) {
  int own = index_of(device);
  if (own < 0 || !info || link >= kNvlinkMaxLinks) return NVML_ERROR_INVALID_ARGUMENT;
  if (!link_exists(link)) return NVML_ERROR_NOT_SUPPORTED;
  *info = {};
  if (has_nvswitch()) {
    info->bus = 0xf0;
    std::memcpy(info->busId, "00000000:F0:00.0", 17);
  } else {
    int peer = peer_of(own, link);
    info->bus = bus(peer);
    std::memcpy(info->busId, bus_id(peer).c_str(), bus_id(peer).size() + 1);
  }
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link,
                                              nvmlPciInfo_t* info) {
  return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, info);
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second,
                                    nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t* status) {
  if (index_of(first) < 0 || index_of(second) < 0 || !status) return NVML_ERROR_INVALID_ARGUMENT;
  bool ok = index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS
                ? has_nvlink()
                : true;
  *status = ok ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second,
                                                 nvmlGpuTopologyLevel_t* level) {
  int one = index_of(first), other = index_of(second);
  if (one < 0 || other < 0 || !level) return NVML_ERROR_INVALID_ARGUMENT;
  // Two sockets, half of the GPUs on each.
  int half = (count() + 1) / 2;
  *level = one == other                 ? NVML_TOPOLOGY_INTERNAL
           : one / half == other / half ? NVML_TOPOLOGY_NODE
                                        : NVML_TOPOLOGY_SYSTEM;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t first, nvmlDevice_t second, int* same) {
  if (index_of(first) < 0 || index_of(second) < 0 || !same) return NVML_ERROR_INVALID_ARGUMENT;
  *same = first == second;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* info) {
  return fabric(device, info);
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t* info) {
  nvmlReturn_t result = fabric(device, info);
  if (info) info->healthMask = 0;
  return result;
}

}  // extern "C"
