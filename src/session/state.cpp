#include "session/state.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "session/host_clock.h"
#include "session/launch_lock.h"
#include "session/live_device.h"
#include "session/stop.h"
#include "session/virtual_time.h"
#include "session/waiting.h"

namespace maya::session {
namespace {

State* the_state = nullptr;

void finish() {
  if (the_state != nullptr && !the_state->forked) the_state->recorder.finish();
}

void after_fork_in_child() {
  if (the_state == nullptr) return;
  the_state->process = getpid();
  // CUDA does not survive a fork: a child of a process that used the device gets an error, and a
  // child that never asks leaves no recording.
  if (the_state->recorder.touched()) {
    the_state->forked = true;
    the_state->recorder.abandon();
  }
}

// How much more than the memory of a GPU is handed out.
std::uint64_t beyond_memory(std::int64_t total) {
  if (std::getenv("MAYA_NO_MEMORY_LIMIT") != nullptr) return UINT64_MAX;
  const char* slack = std::getenv("MAYA_MEMORY_SLACK");
  if (slack == nullptr || total <= 0) return 0;
  const double share = std::strtod(slack, nullptr);
  return share > 0 && share < 1 ? static_cast<std::uint64_t>(share * static_cast<double>(total))
                                : 0;
}

}  // namespace

// What a process takes of the context's share only with the first work of a library: local memory
// of its kernels, which grows with the SMs, and their code. vLLM says how much that is when it
// starts on one GPU (`non_torch_memory`): 0.05 GiB on a T4 (40 SMs), 0.11 on an A100 (108) and 0.16
// on an H100 (132) in published logs, so 1 to 1.3 MiB per SM.
static std::uint64_t library_bytes(const catalog::Gpu& gpu) {
  return static_cast<std::uint64_t>(std::max(gpu.sms, 0)) << 20;
}

State::State()
    : settings(Settings::from_environment()),
      recorder(settings),
      memory(
          std::max(device_count(), 1),
          settings.cluster.gpu.memory_bytes > 0
              ? static_cast<std::uint64_t>(settings.cluster.gpu.memory_bytes)
              : device::Memory::page,
          static_cast<std::uint64_t>(std::max<std::int64_t>(settings.cluster.gpu.context_bytes, 0)),
          beyond_memory(settings.cluster.gpu.memory_bytes), library_bytes(settings.cluster.gpu)),
      values(memory.base(), memory.span()) {
  values.wait_by(
      [](const std::function<void()>& resolve) { launch_lock().released_while(resolve); });
  for (int i = 0; i < device_count(); ++i) {
    Stream* stream = streams.create();
    stream->device = i;
    stream->legacy = true;
    stream->id = i == 0 ? 0 : stream_numbers.take({i, 0, 0});
    stream->announced = i == 0;
    default_streams.push_back(stream);
    Pool* pool = pools.create();
    pool->device = i;
    pool->is_default = true;
    default_pools.push_back(pool);
    current_pools.push_back(pool);
  }
  if (!settings.fault.empty() && std::getenv("MAYA_RUN_DIR") != nullptr)
    std::fprintf(stderr, "maya: no emulated device: %s\n", settings.fault.c_str());
}

State& state() {
  static State* instance = [] {
    if (time_domain == nullptr) HostClock::calibrate();
    the_state = new State;
    std::atexit(finish);
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    return the_state;
  }();
  return *instance;
}

__attribute__((destructor)) static void unload() { finish(); }

bool device_used() { return the_state != nullptr; }

void end_abruptly() {
  // In the middle of one of our calls it comes from a signal handler: what we hold there stays
  // held.
  if (the_state != nullptr && the_state->process == getpid() && !host_clock().inside()) finish();
}

int ready() {
  State& s = state();
  if (s.forked) [[unlikely]]
    return code::not_initialized;
  if (s.settings.devices.empty()) [[unlikely]]
    return code::no_device;
  return code::success;
}

int touch() {
  State& s = state();
  if (int error = ready()) return error;
  if (!s.recorder.begun()) [[unlikely]] {
    await_stop();
    report_long_waits();
    if (time_domain != nullptr) make_device_live();
    s.recorder.begin();
  }
  return code::success;
}

Thread& thread() {
  static thread_local Thread t;
  return t;
}

}  // namespace maya::session
