// Tables of private functions that the CUDA runtime asks its driver for. A program that links the
// runtime statically (nvcc's default, cuda.bindings, CuTe) brings NVIDIA's own runtime along, which
// then works on the emulated driver.
//
// NVIDIA does not document these tables. Their ids, the positions that are used and what stands
// there were worked out by the ZLUDA project (github.com/vosen/ZLUDA, dark_api) and by watching the
// runtimes of CUDA 12.9, 13.0 and 13.5 start. A position that nobody knows is counted when it is
// called, like any function without a body.
#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "session/machine.h"
#include "session/session.h"
#include "shim/cuda/context_storage.h"
#include "shim/cuda/md2.h"

using namespace maya;
using maya::abi::CUcontext;

extern "C" {
int cuDevicePrimaryCtxRetain(CUcontext* context, int device);
int cuModuleLoadData(void** module, const void* image);
int cuDeviceGetUuid_v2(void* uuid, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceGetCount(int* count);
}

namespace {

enum class Id { runtime, thread_storage, hooks, context_storage, checks, authentication, tools };

constexpr const char* name_of(Id id) {
  constexpr const char* names[] = {"cudart interface",
                                   "tools thread storage",
                                   "runtime callback hooks",
                                   "context storage",
                                   "context checks",
                                   "integrity check",
                                   "tools"};
  return names[static_cast<int>(id)];
}

// Stands at every position without a function of ours.
template <Id id, std::size_t position>
int unknown() {
  static unsigned seen = 0;
  static const std::string name =
      std::string("cuGetExportTable ") + name_of(id) + " [" + std::to_string(position) + "]";
  maya_unimplemented("libcuda", name.c_str(), &seen);
  return session::code::not_supported;
}

// The first word of most tables is their size in bytes.
template <Id id, std::size_t size, bool has_size = true>
struct Table {
  const void* at[size];
  Table() { fill(std::make_index_sequence<size>()); }
  template <std::size_t... position>
  void fill(std::index_sequence<position...>) {
    ((at[position] = reinterpret_cast<const void*>(&unknown<id, position>)), ...);
    if (has_size) at[0] = reinterpret_cast<const void*>(size * sizeof(void*));
  }
  template <class Function>
  void set(std::size_t position, Function* function) {
    at[position] = reinterpret_cast<const void*>(function);
  }
};

int primary_context(CUcontext* context, int device) {
  return cuDevicePrimaryCtxRetain(context, device);
}

int load(void** module, const void* wrapper) { return cuModuleLoadData(module, wrapper); }
int load_with_options(void** module, const void* wrapper, void*, void*, unsigned) {
  return load(module, wrapper);
}
int load_header(const void* header, void** module, void*, void*, unsigned) {
  return load(module, header);
}
void nothing(std::size_t) {}
int load_compilers() { return 0; }

// Memory in which tools keep which calls they want to hear of: none.
template <std::size_t words>
void tool_words(void** address, std::size_t* count) {
  static std::uint64_t memory[words] = {};
  *address = memory;
  *count = words;
}

int context_is_usable(CUcontext, unsigned* result, const void**) {
  if (result != nullptr) *result = 0;
  return 0;
}
int no_check() { return 0; }

int authenticate(unsigned version, std::uint64_t seconds, std::uint64_t* result);

struct Tables {
  Table<Id::runtime, 13> runtime;
  Table<Id::thread_storage, 4> thread_storage;
  Table<Id::hooks, 7> hooks;
  Table<Id::context_storage, 4, false> context_storage;
  Table<Id::checks, 4> checks;
  Table<Id::authentication, 3> authentication;
  Table<Id::tools, 32> tools;

  Tables() {
    runtime.set(1, load);
    runtime.set(2, primary_context);
    runtime.set(6, load_with_options);
    runtime.set(7, nothing);
    runtime.set(8, load_header);
    runtime.set(12, load_compilers);
    hooks.set(2, tool_words<1024>);
    hooks.set(6, tool_words<14>);
    context_storage.set(0, shim::cuda::put_in_context);
    context_storage.set(1, shim::cuda::remove_from_context);
    context_storage.set(2, shim::cuda::get_from_context);
    context_storage.at[3] = nullptr;
    checks.set(2, context_is_usable);
    checks.set(3, no_check);
    authentication.set(1, authenticate);
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

// The runtime wants to know that driver and runtime mean the same process, tables and devices: a
// digest of all of them under a key that both have. The last digit of `version` tells which form of
// the check is meant; the first two are constants.
int authenticate(unsigned version, std::uint64_t seconds, std::uint64_t* result) {
  if (result == nullptr) return session::code::invalid_value;
  if (version % 10 < 2) {
    result[0] = version % 10 == 0 ? 0x3341181C03CB675C : 0x1841181C03CB675C;
    result[1] = 0x8ED383AA1F4CD1E8;
    return 0;
  }
  struct {
    std::uint32_t driver, runtime, process, thread;
    const void *runtime_table, *own_table, *function;
    std::uint64_t seconds;
  } const state{session::driver_version,
                version,
                static_cast<std::uint32_t>(getpid()),
                static_cast<std::uint32_t>(pthread_self()),
                tables().runtime.at,
                tables().authentication.at,
                tables().authentication.at[1],
                seconds};
  shim::cuda::HmacMd2 digest({0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52, 0xAA, 0x08, 0x41,
                              0x36, 0x0B, 0xF5, 0x5A, 0x9F});
  digest.add(&state, sizeof state);
  int count = 0;
  cuDeviceGetCount(&count);
  for (int device = 0; device < count; ++device) {
    struct {
      unsigned char uuid[16];
      int domain, bus, device;
    } place{};
    constexpr int pci_bus = 33, pci_device = 34, pci_domain = 50;
    cuDeviceGetUuid_v2(place.uuid, device);
    cuDeviceGetAttribute(&place.domain, pci_domain, device);
    cuDeviceGetAttribute(&place.bus, pci_bus, device);
    cuDeviceGetAttribute(&place.device, pci_device, device);
    digest.add(&place, sizeof place);
  }
  const shim::cuda::Digest made = digest.digest();
  std::memcpy(result, made.data(), made.size());
  return 0;
}

struct Served {
  unsigned char id[16];
  const void* table;
};

const void* find_table(const void* id) {
  const Tables& all = tables();
  const Served served[] = {
      {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
        0xf9},
       all.runtime.at},
      {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
        0xdc},
       all.thread_storage.at},
      {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
        0x66},
       all.hooks.at},
      {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
        0x93},
       all.context_storage.at},
      {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
        0x7e},
       all.checks.at},
      {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
        0xf2},
       all.authentication.at},
      {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
        0xf2},
       all.tools.at},
  };
  for (const Served& one : served)
    if (std::memcmp(one.id, id, sizeof one.id) == 0) return one.table;
  return nullptr;
}

}  // namespace

extern "C" int cuGetExportTable(const void** table, const void* id) {
  if (table == nullptr || id == nullptr) return session::code::invalid_value;
  *table = find_table(id);
  return *table != nullptr ? 0 : session::code::not_found;  // of some the runtime does without
}
