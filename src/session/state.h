// The one emulated machine of this process. Reached through state(), inside the session only; never
// destroyed, because programs call CUDA from their own destructors.
#pragma once

#include <unistd.h>

#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "device/memory.h"
#include "device/slab.h"
#include "session/objects.h"
#include "session/recorder.h"
#include "session/session.h"
#include "session/settings.h"
#include "session/stream_numbers.h"
#include "values/known_bytes.h"

namespace maya::session {

struct State {
  State();
  Settings settings;
  Recorder recorder;
  device::Memory memory;
  maya::values::KnownBytes values;

  device::Slab<Stream, 1 << 16> streams;
  device::Slab<Event, 1 << 20> events;
  device::Slab<Graph, 1 << 16> graphs;
  device::Slab<Node, 1 << 22> nodes;
  device::Slab<GraphExec, 1 << 16> executables;
  device::Slab<Function, 1 << 20> functions;
  device::Slab<Pool, 1 << 10> pools;
  device::Slab<Physical, 1 << 20> physicals;

  std::vector<Stream*> default_streams;  // legacy, by device
  std::vector<Pool*> default_pools, current_pools;

  bool forked = false;
  int process = getpid();        // a child of vfork shares our memory, and is not us
  std::mutex mutex;              // for what is rare: creation, registration, capture, graphs
  std::atomic<int> captures{0};  // in progress, process wide
  std::atomic<std::uint32_t> next_event{1};
  StreamNumbers stream_numbers;
  std::atomic<std::uint64_t> next_unique{1};
  std::map<std::uint64_t, std::uint64_t> pinned;  // host allocations: address → bytes
  std::shared_mutex pinned_mutex;
  std::atomic<double> host_model_ns{0};
  std::atomic<bool> timing_wanted{false};  // the program has made an event that measures time

  int device_count() const { return static_cast<int>(settings.devices.size()); }
};

State& state();
// Not part of the state: programs register their kernels while they are loaded, long before they
// ask for the device, and a process may fork in between.
device::Slab<Module, 1 << 18>& modules();
// Whether this process has asked for the device at all.
bool device_used();
// The process is about to end without running its exit handlers.
void end_abruptly();
struct Thread {
  int device = 0;
  int last_error = 0;
  int capture_mode = 0;  // 0 global, 1 thread local, 2 relaxed
  std::uint64_t id = 0;
  Stream* per_thread_stream = nullptr;
};
Thread& thread();

}  // namespace maya::session
