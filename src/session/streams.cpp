#include <algorithm>

#include "session/calls.h"
#include "session/host_clock.h"
#include "session/live_device.h"
#include "session/meetings.h"
#include "session/observation.h"
#include "session/progress.h"
#include "session/stop.h"
#include "session/virtual_time.h"
#include "values/collectives.h"

namespace maya::session {
namespace {

// Modelled time only moves forward; used for the durations a program may ask for.
void host_reaches(double ns) {
  State& s = state();
  double now = s.host_model_ns.load(std::memory_order_relaxed);
  while (now < ns && !s.host_model_ns.compare_exchange_weak(now, ns)) {
  }
}

StreamNumbers::Kind kind_of(const Stream& stream) {
  return {stream.device, stream.flags, stream.priority};
}

void announce(Stream& stream) {
  if (stream.announced) [[likely]]
    return;
  stream.announced = true;
  std::uint8_t flags = (stream.flags & 1 ? trace::Flag::non_blocking : 0) |
                       (stream.legacy ? trace::Flag::legacy : 0);
  state().recorder.record(trace::Kind::stream_create, stream.id,
                          static_cast<std::uint32_t>(stream.device), flags,
                          static_cast<std::uint16_t>(stream.priority + 1000));
}

}  // namespace

// In virtual time the host has waited for the other members by now.
void attend_meetings() {
  if (time_domain == nullptr && meetings().attend(maya::values::peer_patience()))
    host_clock().reanchor();  // waiting for peers is not this rank's work
}

int find_stream(void* handle, Stream*& stream) {
  if (int error = touch()) return error;
  State& s = state();
  auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= 1) {
    stream = s.default_streams[static_cast<std::size_t>(thread().device)];
  } else if (value == 2) {
    Thread& t = thread();
    if (t.per_thread_stream == nullptr)
      if (int error = make_stream(t.per_thread_stream, 0, 0)) return error;
    stream = t.per_thread_stream;
  } else {
    stream = s.streams.find(handle);
    if (stream == nullptr) return code::invalid_handle;
  }
  announce(*stream);
  return code::success;
}

bool valid_stream(void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle) <= 2 || state().streams.find(handle) != nullptr;
}

bool capturing(void* handle) {
  Stream* stream = nullptr;
  return find_stream(handle, stream) == 0 && stream->capture != nullptr;
}

int make_stream(Stream*& stream, unsigned flags, int priority) {
  if (int error = touch()) return error;
  State& s = state();
  stream = s.streams.create();
  if (stream == nullptr) return code::out_of_memory;
  stream->device = thread().device;
  stream->flags = flags;
  stream->priority = std::clamp(priority, -5, 0);
  stream->id = s.stream_numbers.take(kind_of(*stream));
  if (stream->id == 0) {
    s.streams.destroy(stream);
    return code::out_of_memory;
  }
  stream->unique = s.next_unique.fetch_add(1);
  return code::success;
}

int stream_create(void*& handle, unsigned flags, int priority) {
  Stream* stream = nullptr;
  if (int error = make_stream(stream, flags, priority)) return error;
  handle = stream;
  return code::success;
}

int stream_properties(void* handle, StreamProperties& properties) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  properties = {stream->device, stream->priority, stream->flags, stream->unique};
  return code::success;
}

std::vector<std::pair<std::uint16_t, int>> stream_devices() {
  std::vector<std::pair<std::uint16_t, int>> devices;
  state().streams.each([&](Stream& stream) { devices.emplace_back(stream.id, stream.device); });
  return devices;
}

int stream_destroy(void* handle) {
  if (reinterpret_cast<std::uintptr_t>(handle) <= 2) return code::invalid_handle;
  if (int error = ready()) return error;
  State& s = state();
  Stream* stream = s.streams.find(handle);
  if (stream == nullptr) return code::invalid_handle;
  if (stream->announced) s.recorder.record(trace::Kind::stream_destroy, stream->id, 0);
  const StreamNumbers::Kind kind = kind_of(*stream);
  const std::uint16_t number = stream->id;
  if (s.streams.destroy(handle)) s.stream_numbers.give_back(kind, number);
  return code::success;
}

int stream_synchronize(void* handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  if (stream->capture != nullptr) {
    stream->capture->invalidated = true;
    return code::capture_unsupported;
  }
  if (int error = check_unsafe()) return error;
  host_reaches(stream->model_ns);
  stream_reached(*stream);
  state().recorder.record(trace::Kind::stream_synchronize, stream->id, 0,
                          stream->legacy ? trace::Flag::legacy : 0);
  attend_meetings();
  return code::success;
}

void stream_reached(Stream& stream) {
  progress().reached(stream);
  stream.busy = false;
  stream.asked = 0;
}

int stream_query(void* handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  if (stream->capture != nullptr) {
    stream->capture->invalidated = true;
    return code::capture_unsupported;
  }
  if (time_domain != nullptr && device_is_live())
    return live_stream_done(stream->id) ? code::success : code::not_ready;
  return progress().done(*stream) ? code::success : code::not_ready;
}

int device_synchronize() {
  if (int error = touch()) return error;
  if (int error = check_unsafe()) return error;
  State& s = state();
  double last = 0;
  s.streams.each([&](Stream& stream) {
    last = std::max(last, stream.model_ns);
    stream.busy = false;
  });
  host_reaches(last);
  progress().reached_all();
  s.recorder.record(trace::Kind::device_synchronize, 0, 0);
  attend_meetings();
  return code::success;
}

int stream_wait_event(void* stream_handle, void* event_handle, unsigned) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  State& s = state();
  Event* event = s.events.find(event_handle);
  if (event == nullptr) return code::invalid_handle;
  if (event->capture != nullptr) {
    std::lock_guard guard(s.mutex);
    Capture* capture = event->capture;
    if (capture->id != event->capture_id || capture->graph == nullptr) return code::captured_event;
    if (stream->capture != nullptr && stream->capture != capture) return code::capture_merge;
    stream->capture = capture;  // the stream joins the capture
    for (auto tip : event->tips)
      if (std::find(stream->tips.begin(), stream->tips.end(), tip) == stream->tips.end())
        stream->tips.push_back(tip);
    return code::success;
  }
  if (stream->capture != nullptr && event->recorded) {
    // Work outside the capture cannot be waited for inside it, unless it was recorded as external.
    return code::capture_isolation;
  }
  if (!event->recorded) return code::success;  // never recorded: no effect
  stream->model_ns = std::max(stream->model_ns, event->model_ns);
  progress().waits(*stream, *event);
  s.recorder.record(trace::Kind::stream_wait_event, stream->id, event->id,
                    stream->legacy ? trace::Flag::legacy : 0);
  return code::success;
}

int stream_host_function(void* handle, void (*function)(void*), void* data) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  if (function == nullptr) return code::invalid_value;
  if (stream->capture != nullptr) {
    trace::Record record{};
    record.kind = trace::Kind::host_function;
    Node* node = capture_node(*stream, NodeType::host, record);
    if (node == nullptr) return code::capture_invalidated;
    node->host = function;
    node->host_data = data;
    return code::success;
  }
  state().recorder.record(trace::Kind::host_function, stream->id, 0,
                          stream->legacy ? trace::Flag::legacy : 0);
  function(data);  // nothing is pending on an emulated stream, so it is due now
  return code::success;
}

int event_create(void*& handle, unsigned flags) {
  if (int error = touch()) return error;
  State& s = state();
  Event* event = s.events.create();
  if (event == nullptr) return code::out_of_memory;
  event->id = s.next_event.fetch_add(1, std::memory_order_relaxed);
  event->flags = flags;
  if (!(flags & 2) && time_domain == nullptr)
    s.timing_wanted.store(true, std::memory_order_relaxed);
  event->device = thread().device;
  handle = event;
  return code::success;
}

int event_export(void* handle, std::uint32_t& number) {
  constexpr unsigned interprocess = 4;
  const Event* event = state().events.find(handle);
  if (event == nullptr || !(event->flags & interprocess)) return code::invalid_value;
  number = event->id;
  return code::success;
}

int event_destroy(void* handle) {
  if (int error = ready()) return error;
  return state().events.destroy(handle) ? code::success : code::invalid_handle;
}

int event_record(void* event_handle, void* stream_handle, unsigned flags) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  State& s = state();
  Event* event = s.events.find(event_handle);
  if (event == nullptr) return code::invalid_handle;
  constexpr unsigned external = 1;
  if (stream->capture != nullptr && !(flags & external)) {
    event->capture = stream->capture;
    event->capture_id = stream->capture->id;
    event->tips = stream->tips;
    return code::success;
  }
  event->capture = nullptr;
  event->recorded = true;
  event->model_ns = std::max(stream->model_ns, s.host_model_ns.load(std::memory_order_relaxed));
  if (stream->capture != nullptr) return code::success;
  progress().recorded(*event, *stream);
  s.recorder.record(trace::Kind::event_record, stream->id, event->id,
                    stream->legacy ? trace::Flag::legacy : 0);
  return code::success;
}

int event_synchronize(void* handle) {
  if (int error = touch()) return error;
  State& s = state();
  Event* event = s.events.find(handle);
  if (event == nullptr) return code::invalid_handle;
  if (event->capture != nullptr) {
    event->capture->invalidated = true;
    return code::captured_event;
  }
  if (int error = check_unsafe()) return error;
  if (!event->recorded) return code::success;
  host_reaches(event->model_ns);
  progress().reached(*event);
  s.recorder.record(trace::Kind::event_synchronize, 0, event->id);
  attend_meetings();
  return code::success;
}

int event_query(void* handle) {
  if (int error = ready()) return error;
  Event* event = state().events.find(handle);
  if (event == nullptr) return code::invalid_handle;
  if (event->capture != nullptr) return code::captured_event;
  if (time_domain != nullptr && device_is_live())
    return !event->recorded || live_event_done(event->id) ? code::success : code::not_ready;
  return !event->recorded || progress().done(*event) ? code::success : code::not_ready;
}

namespace {

// Two events that were recorded one after the other never have the same time stamp: CUDA documents
// a resolution of about half a microsecond. Benchmarks divide by what they time, also where that is
// nothing.
float elapsed_ms(const Event* from, const Event* to, double ns) {
  constexpr double resolution_ns = 500;
  if (from != to && ns >= 0 && ns < resolution_ns) ns = resolution_ns;
  return static_cast<float>(ns * 1e-6);
}

}  // namespace

int event_elapsed(float* milliseconds, void* start, void* end) {
  if (int error = ready()) return error;
  State& s = state();
  Event* a = s.events.find(start);
  Event* b = s.events.find(end);
  if (a == nullptr || b == nullptr || !a->recorded || !b->recorded || ((a->flags | b->flags) & 2))
    return code::invalid_handle;
  if (milliseconds == nullptr) return code::invalid_value;
  if (time_domain != nullptr && device_is_live()) {
    const std::int64_t from = live_event_time(a->id, true), to = live_event_time(b->id, true);
    *milliseconds = elapsed_ms(a, b, static_cast<double>(to - from));
    return code::success;
  }
  *milliseconds = elapsed_ms(a, b, std::max(b->model_ns - a->model_ns, 0.0));
  return code::success;
}

int enqueue(Stream& stream, trace::Kind kind, std::uint32_t op, std::uint8_t flags,
            std::uint16_t aux, NodeType node) {
  State& s = state();
  if (stream.capture != nullptr) [[unlikely]] {
    trace::Record record{};
    record.kind = kind;
    record.flags = flags;
    record.aux = aux;
    record.value = op;
    return capture_node(stream, node, record) ? code::success : code::capture_invalidated;
  }
  // Not at a copy: a program that saves a checkpoint copies, and would be left with half of it.
  if (stop_asked() && kind != trace::Kind::copy && kind != trace::Kind::fill) [[unlikely]]
    stop_here();
  if (stream.legacy) flags |= trace::Flag::legacy;
  stream.busy = true;
  if (s.timing_wanted.load(std::memory_order_relaxed)) [[unlikely]]
    stream.model_ns = std::max(stream.model_ns, s.host_model_ns.load(std::memory_order_relaxed)) +
                      modelled_op_ns(op);
  s.recorder.record(kind, stream.id, op, flags, aux);
  return code::success;
}

}  // namespace maya::session
