#include "session/attributes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "session/state.h"

namespace maya::session {
namespace {

int limited(double value) { return static_cast<int>(std::min(value, 2147483647.0)); }

}  // namespace

int physical_device(int device) {
  const auto& devices = state().settings.devices;
  return device >= 0 && device < static_cast<int>(devices.size())
             ? devices[static_cast<std::size_t>(device)]
             : device;
}

void device_uuid(int device, unsigned char* uuid) {
  int number =
      physical_device(device) + state().settings.node * state().settings.cluster.gpus_per_node;
  const unsigned char prefix[14] = {0x4d, 0x61, 0x79, 0x61, 0x45, 0x6d, 0x75,
                                    0x6c, 0x80, 0x01, 0,    0,    0,    0};
  std::memcpy(uuid, prefix, 14);
  uuid[14] = static_cast<unsigned char>(number >> 8);
  uuid[15] = static_cast<unsigned char>(number);
}

void device_bus_id(int device, char* text, std::size_t bytes) {
  std::snprintf(text, bytes, "0000:%02X:00.0", 0x10 + 8 * physical_device(device));
}

bool device_attribute(int attribute, int device, int& value) {
  const auto& g = gpu();
  const auto& cluster = state().settings.cluster;
  const bool modern = g.capability_major >= 8;
  switch (attribute) {
    case 1:
      value = 1024;
      break;  // threads per block
    case 2:
    case 3:
      value = 1024;
      break;  // block x, y
    case 4:
      value = 64;
      break;
    case 5:
      value = 2147483647;
      break;  // grid x
    case 6:
    case 7:
      value = 65535;
      break;
    case 8:
      value = 49152;
      break;  // shared memory per block without opt-in
    case 9:
      value = 65536;
      break;  // constant memory
    case 10:
      value = 32;
      break;
    case 11:
      value = 2147483647;
      break;  // pitch
    case 12:
      value = 65536;
      break;  // registers per block
    case 13:
      value = limited(g.boost_clock_mhz * 1000);
      break;
    case 14:
      value = 512;
      break;  // texture alignment
    case 15:
      value = 1;
      break;  // copy and compute overlap
    case 16:
      value = g.sms;
      break;
    case 17:
      value = 0;
      break;  // no time-out
    case 18:
      value = 0;
      break;  // not integrated
    case 19:
      value = 1;
      break;  // maps host memory
    case 20:
      value = 0;
      break;  // compute mode default
    case 21:
      value = 131072;
      break;
    case 22:
      value = 131072;
      break;
    case 23:
      value = 65536;
      break;
    case 24:
    case 25:
    case 26:
      value = 16384;
      break;
    case 27:
    case 28:
      value = 32768;
      break;
    case 29:
      value = 2048;
      break;
    case 30:
      value = 512;
      break;  // surface alignment
    case 31:
      value = 1;
      break;  // concurrent kernels
    case 32:
      value = g.ecc ? 1 : 0;
      break;
    case 33:
      value = 0x10 + 8 * physical_device(device);
      break;
    case 34:
      value = 0;
      break;
    case 35:
      value = 0;
      break;  // no TCC
    case 36:
      value = limited(g.memory_clock_mhz * 1000);
      break;
    case 37:
      value = g.memory_bus_bits;
      break;
    case 38:
      value = limited(static_cast<double>(g.l2_bytes));
      break;
    case 39:
      value = g.max_threads_per_sm;
      break;
    case 40:
      value = std::max(g.copy_engines, 1);
      break;
    case 41:
      value = 1;
      break;  // unified addressing
    case 42:
      value = 32768;
      break;
    case 43:
      value = 2048;
      break;
    case 45:
    case 46:
      value = 32768;
      break;
    case 47:
    case 48:
    case 49:
      value = 16384;
      break;
    case 50:
      value = 0;
      break;  // PCI domain
    case 51:
      value = 32;
      break;  // texture pitch alignment
    case 52:
    case 53:
    case 54:
      value = 32768;
      break;
    case 55:
    case 56:
    case 57:
    case 58:
    case 59:
    case 60:
    case 61:
    case 62:
    case 63:
    case 64:
    case 65:
    case 66:
    case 67:
    case 68:
      value = 32768;
      break;
    case 69:
      value = 268435456;
      break;
    case 70:
      value = 131072;
      break;
    case 71:
      value = 65000;
      break;
    case 72:
      value = 2097120;
      break;
    case 73:
    case 74:
    case 77:
      value = 32768;
      break;
    case 75:
      value = g.capability_major;
      break;
    case 76:
      value = g.capability_minor;
      break;
    case 78:
      value = 1;
      break;  // stream priorities
    case 79:
    case 80:
      value = 1;
      break;  // L1
    case 81:
      value = limited(static_cast<double>(g.shared_per_sm));
      break;
    case 82:
      value = g.registers_per_sm > 0 ? g.registers_per_sm : 65536;
      break;
    case 83:
      value = 1;
      break;  // managed memory
    case 84:
      value = 0;
      break;
    case 85:
      value = physical_device(device);
      break;
    case 86:
      value = g.name == "gh200" || g.name == "gb200";
      break;  // native atomics to the host
    case 87: {
      auto f32 = g.peak_tflops.find(DType::f32), f64 = g.peak_tflops.find(DType::f64);
      value = f32 != g.peak_tflops.end() && f64 != g.peak_tflops.end() && f64->second > 0
                  ? std::max(1, static_cast<int>(std::lround(f32->second / f64->second)))
                  : 32;
      break;
    }
    case 88:
      value = g.name == "gh200" || g.name == "gb200";
      break;  // pageable access
    case 89:
      value = 1;
      break;  // concurrent managed access
    case 90:
      value = 1;
      break;  // compute preemption
    case 91:
      value = 1;
      break;  // host pointer of registered memory
    case 92:
    case 93:
      value = 1;
      break;  // stream memory operations
    case 94:
      value = 1;
      break;
    case 95:
      value = 1;
      break;  // cooperative launch
    case 96:
      value = 1;
      break;
    case 97:
      value = limited(static_cast<double>(g.shared_per_block_optin));
      break;
    case 98:
      value = 1;
      break;
    case 99:
      value = 1;
      break;  // host register
    case 100:
      value = g.name == "gh200" || g.name == "gb200";
      break;
    case 101:
      value = 0;
      break;
    case 102:
      value = 1;
      break;  // virtual memory management
    case 103:
      value = 1;
      break;  // POSIX handles
    case 104:
    case 105:
      value = 0;
      break;
    case 106:
      value = g.max_blocks_per_sm;
      break;
    case 107:
      value = 0;
      break;  // compression
    case 108:
      value = modern ? limited(static_cast<double>(g.l2_bytes) * 0.75) : 0;
      break;
    case 109:
      value = modern ? limited(134213632) : 0;
      break;
    case 110:
      value = cluster.nics_per_node > 0;
      break;  // RDMA with VMM
    case 111:
      value = modern ? 1024 : 0;
      break;  // reserved shared memory per block
    case 112:
      value = 1;
      break;
    case 113:
      value = 1;
      break;
    case 114:
      value = 1;
      break;
    case 115:
      value = 1;
      break;  // memory pools
    case 116:
      value = cluster.nics_per_node > 0;
      break;
    case 117:
      value = 3;
      break;
    case 118:
      value = 200;
      break;
    case 119:
      value = 9;
      break;  // pool handle types: POSIX, fabric
    case 120:
      value = g.capability_major >= 9;
      break;  // cluster launch
    case 121:
      value = 1;
      break;
    case 122:
    case 123:
      value = 0;
      break;
    case 124:
      value = 1;
      break;  // deferred mapping
    case 125:
      value = 1;
      break;  // IPC events
    case 126:
      value = 1;
      break;
    case 127:
      value = g.capability_major >= 9;
      break;  // tensor map access
    case 128:
      value = cluster.nvlink_domain > cluster.gpus_per_node;
      break;  // fabric handles
    case 129:
      value = 1;
      break;
    case 130:
      value = 0;
      break;
    case 131:
      value = 0;
      break;
    case 132:
      value = g.capability_major >= 9 && cluster.nvswitch;
      break;  // multicast
    case 133:
      value = 0;
      break;
    case 134:
      value = 0;
      break;
    case 135:
    case 136:
    case 137:
    case 138:
    case 139:
    case 140:
    case 141:
    case 142:
    case 143:
    case 144:
      value = 0;
      break;
    default:
      return false;
  }
  return true;
}

}  // namespace maya::session
