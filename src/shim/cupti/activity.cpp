#include "shim/cupti/activity.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "session/observation.h"
#include "shim/cupti/functions.h"

using namespace maya::abi;
namespace session = maya::session;
using maya::session::CalledAs;
using maya::trace::Kind;

namespace maya::cupti {
namespace {

constexpr std::size_t kinds = 64;
constexpr int external_kinds = 8;

struct Api {
  std::uint32_t cbid, correlation, thread;
  bool driver;
  std::int64_t start, end;
  trace::Kind kind;
  std::uint16_t stream;
  std::uint32_t value;  // of the record: an event, a graph
};
struct External {
  int kind;
  std::uint64_t id;
  std::uint32_t correlation;
};

// What was recorded since the last flush. Named by the time of the job, stamped when handed over.
struct Activities {
  std::mutex mutex;
  std::array<bool, kinds> enabled{};
  std::array<bool, kinds> wanted{};  // at some time since the last flush: clients flush at the end
  int count{};                       // of kinds enabled
  std::vector<Api> calls;
  std::vector<External> externals;
  std::unordered_map<std::uint32_t, const char*> names;  // by op; never freed, clients keep them
  Request* request{};
  Complete* complete{};
  std::uint8_t* buffer{};
  std::size_t size{}, used{};
  // The client's clock at two times of the job.
  std::int64_t time0{};
  std::uint64_t stamp0{};
  double stamps_per_ns{1};
};

Activities& activities() {
  static auto* instance = new Activities;
  return *instance;
}
std::atomic<std::uint64_t (*)()> clock_callback{nullptr};
thread_local std::vector<std::uint64_t> stacks[external_kinds];

void observe(const trace::Record& record, std::uint32_t correlation, std::int64_t start,
             std::int64_t end) {
  const std::uint32_t cbid = cbid_of(record.kind);
  if (cbid == 0) return;
  Activities& a = activities();
  std::lock_guard guard(a.mutex);
  // A client wants its records only if it was asked for a buffer.
  if (a.buffer == nullptr && a.request != nullptr) {
    std::size_t most = 0;
    a.used = a.size = 0;
    a.request(&a.buffer, &a.size, &most);
  }
  CalledAs::Api api{};
  const std::uint32_t asked = CalledAs::function(api);
  const bool other = asked != 0 && (cbid == cbid_cudaLaunchKernel || cbid == cbid_cudaGraphLaunch);
  a.calls.push_back({other ? asked : cbid, correlation, static_cast<std::uint32_t>(pthread_self()),
                     other && api == CalledAs::Api::driver, start, end, record.kind, record.stream,
                     record.value});
  for (int kind = 0; kind < external_kinds; ++kind)
    if (!stacks[kind].empty()) a.externals.push_back({kind, stacks[kind].back(), correlation});
}

std::uint64_t stamp(const Activities& a, std::int64_t time) {
  return a.stamp0 + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                        static_cast<double>(time - a.time0) * a.stamps_per_ns));
}

// Room for one record; null: the client gives no buffer.
template <class Record>
Record* room(Activities& a) {
  if (a.buffer != nullptr && a.used + sizeof(Record) > a.size) {
    a.complete(nullptr, 0, a.buffer, a.size, a.used);
    a.buffer = nullptr;
  }
  if (a.buffer == nullptr) {
    std::size_t most = 0;
    a.used = a.size = 0;
    a.request(&a.buffer, &a.size, &most);
    if (a.buffer == nullptr || a.size < sizeof(Record)) return nullptr;
  }
  auto* record = reinterpret_cast<Record*>(a.buffer + a.used);
  std::memset(record, 0, sizeof *record);
  a.used += sizeof *record;
  return record;
}

// "ncclDevKernel_AllReduce_Sum_bf16": what a trace reader takes for communication.
std::string communication_name(const Op& op) {
  if (const auto* message = std::get_if<PointToPoint>(&op.work))
    return message->send ? "ncclDevKernel_SendRecv(ncclSend)" : "ncclDevKernel_SendRecv(ncclRecv)";
  const auto& collective = std::get<Collective>(op.work);
  const std::string function = op.name.substr(0, 4) == "nccl" ? op.name.substr(4) : op.name;
  std::string reduce(enum_name(collective.reduce));
  if (!reduce.empty()) reduce[0] = static_cast<char>(std::toupper(reduce[0]));
  return "ncclDevKernel_" + function + "_" + reduce + "_" +
         std::string(enum_name(collective.dtype));
}

bool is_communication(const Op& op) {
  return std::holds_alternative<Collective>(op.work) ||
         std::holds_alternative<PointToPoint>(op.work);
}

const char* kernel_name(Activities& a, std::uint32_t number, const Op& op) {
  auto [it, fresh] = a.names.try_emplace(number, nullptr);
  if (!fresh) return it->second;
  std::string name = op.name;
  if (is_communication(op))
    name = communication_name(op);
  else if (op.geometry.blocks() == 0)  // a library call: which kernel it would take is not known
    name = std::string(kind_name(op.work)) + " (" + op.name + ")";
  return it->second = strdup(name.c_str());
}

struct Place {
  std::uint32_t device, context, stream;
};

// As CUPTI counts: the first context is 1, a default stream is 7.
class Places {
 public:
  Places() {
    for (const auto& [stream, device] : session::stream_devices())
      devices_[stream] = static_cast<std::uint32_t>(device);
  }
  Place of(std::uint16_t stream) const {
    const auto found = devices_.find(stream);
    const std::uint32_t device = found == devices_.end() ? 0 : found->second;
    return {device, device + 1, 7u + stream};
  }

 private:
  std::unordered_map<std::uint16_t, std::uint32_t> devices_;
};

template <class Record>
void fill(const Activities& a, Record& record, const simulate::Span& span, const Place& place) {
  record.start = stamp(a, span.start_ns);
  record.end = std::max(stamp(a, span.end_ns), record.start + 1);
  record.deviceId = place.device, record.contextId = place.context, record.streamId = place.stream;
  record.correlationId = span.record;
}

// Graphs that were launched, by correlation: their work carries the number of the graph, and of the
// node in it.
struct Launched {
  std::uint32_t graph{}, nodes{};
};
using Graphs = std::unordered_map<std::uint32_t, Launched>;

template <class Record>
void fill(Record& record, Launched* launched) {
  if (launched == nullptr) return;
  record.graphId = launched->graph;
  record.graphNodeId = (std::uint64_t{launched->graph} << 32) + ++launched->nodes;
}

void write(Activities& a, const simulate::Span& span, const Places& places, Graphs& graphs) {
  if (span.op == 0xffffffff) return;
  const auto of_graph = graphs.find(span.record);
  Launched* launched = of_graph == graphs.end() ? nullptr : &of_graph->second;
  if (launched != nullptr && a.wanted[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]) return;  // as one
  const Op op = session::observed_op(span.op);
  const Place place = places.of(span.stream);
  if (const auto* copy = std::get_if<Copy>(&op.work)) {
    if (!a.wanted[CUPTI_ACTIVITY_KIND_MEMCPY]) return;
    auto* record = room<CUpti_ActivityMemcpy>(a);
    if (record == nullptr) return;
    fill(a, *record, span, place);
    fill(*record, launched);
    record->kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    record->bytes = static_cast<std::uint64_t>(copy->bytes);
    const std::uint8_t host =
        copy->pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    record->srcKind = record->dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    switch (copy->direction) {
      case CopyDirection::host_to_device:
        record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, record->srcKind = host;
        break;
      case CopyDirection::device_to_host:
        record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, record->dstKind = host;
        break;
      case CopyDirection::host:
        record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
        record->srcKind = record->dstKind = host;
        break;
      default:
        record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    }
    return;
  }
  if (const auto* set = std::get_if<Fill>(&op.work)) {
    if (!a.wanted[CUPTI_ACTIVITY_KIND_MEMSET]) return;
    auto* record = room<CUpti_ActivityMemset>(a);
    if (record == nullptr) return;
    fill(a, *record, span, place);
    fill(*record, launched);
    record->kind = CUPTI_ACTIVITY_KIND_MEMSET;
    record->bytes = static_cast<std::uint64_t>(set->bytes);
    record->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    return;
  }
  if (!a.wanted[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && !a.wanted[CUPTI_ACTIVITY_KIND_KERNEL])
    return;
  auto* record = room<CUpti_ActivityKernel>(a);
  if (record == nullptr) return;
  fill(a, *record, span, place);
  fill(*record, launched);
  record->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record->completed = record->end;
  record->name = kernel_name(a, span.op, op);
  const Geometry& g = op.geometry;
  // Of a library's kernel the size is not known: it is taken to fill the device.
  const bool known = g.blocks() > 0, communicates = is_communication(op);
  constexpr std::uint32_t usual_threads = 256;
  const auto blocks = communicates ? 1 : static_cast<std::uint32_t>(session::gpu().sms);
  auto size = [&](std::uint32_t value, std::uint32_t otherwise = 1) {
    return static_cast<std::int32_t>(known ? value : otherwise);
  };
  record->gridX = size(g.grid[0], blocks), record->gridY = size(g.grid[1]),
  record->gridZ = size(g.grid[2]);
  record->blockX = size(g.block[0], usual_threads), record->blockY = size(g.block[1]),
  record->blockZ = size(g.block[2]);
  record->registersPerThread = g.registers;
  record->dynamicSharedMemory = static_cast<std::int32_t>(g.shared_bytes);
}

void write(Activities& a, const Api& call, const Places& places) {
  const std::uint64_t start = stamp(a, call.start), end = stamp(a, call.end);
  const auto kind = call.driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  if (a.wanted[static_cast<std::size_t>(kind)])
    if (auto* record = room<CUpti_ActivityAPI>(a))
      *record = {kind,        call.cbid,        start, end, static_cast<std::uint32_t>(getpid()),
                 call.thread, call.correlation, 0};
  const std::uint32_t sync = sync_type(call.kind);
  if (sync == 0 || !a.wanted[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]) return;
  auto* record = room<CUpti_ActivitySynchronization>(a);
  if (record == nullptr) return;
  const Place place = places.of(call.stream);
  const bool of_event = sync == 1 || sync == 2, of_stream = sync == 2 || sync == 3;
  record->kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record->type = sync;
  record->start = start, record->end = end;
  record->correlationId = call.correlation, record->contextId = place.context;
  record->streamId = of_stream ? place.stream : ~std::uint32_t{0};
  record->cudaEventId = of_event ? call.value : ~std::uint32_t{0};
}

// Records of events, with the time at which the device came to them: after all that was put on the
// stream before. Clients that ask for synchronizations get them, too, to tell what is waited for.
void write_events(Activities& a, const std::vector<simulate::Span>& spans, const Places& places) {
  if (!a.wanted[CUPTI_ACTIVITY_KIND_CUDA_EVENT] && !a.wanted[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION])
    return;
  std::vector<const simulate::Span*> order;
  for (const simulate::Span& span : spans) order.push_back(&span);
  std::sort(order.begin(), order.end(),
            [](const auto* x, const auto* y) { return x->record < y->record; });
  std::unordered_map<std::uint16_t, std::int64_t> reached;  // by stream
  std::unordered_map<std::uint32_t, std::int64_t> times;    // by event
  auto next = order.begin();
  for (const Api& call : a.calls) {
    if (call.kind != Kind::event_record && call.kind != Kind::stream_wait_event) continue;
    for (; next != order.end() && (*next)->record < call.correlation; ++next) {
      std::int64_t& time = reached[(*next)->stream];
      time = std::max(time, (*next)->end_ns);
    }
    std::int64_t& stream = reached[call.stream];
    if (call.kind == Kind::stream_wait_event) {
      stream = std::max(stream, times[call.value]);
      continue;
    }
    times[call.value] = std::max(call.end, stream);
    auto* record = room<CUpti_ActivityCudaEvent>(a);
    if (record == nullptr) return;
    const Place place = places.of(call.stream);
    record->kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    record->correlationId = call.correlation;
    record->contextId = place.context, record->streamId = place.stream;
    record->deviceId = place.device;
    record->eventId = call.value;
    record->deviceTimestamp = stamp(a, times[call.value]);
  }
}

Graphs launched_graphs(const Activities& a) {
  Graphs graphs;
  for (const Api& call : a.calls)
    if (call.kind == Kind::graph_launch) graphs[call.correlation] = {call.value + 1, 0};
  return graphs;
}

// From the first to the last work of each launch.
void write_graphs(Activities& a, const std::vector<simulate::Span>& spans, const Places& places,
                  const Graphs& graphs) {
  if (!a.wanted[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]) return;
  std::unordered_map<std::uint32_t, simulate::Span> whole;
  for (const simulate::Span& span : spans) {
    if (!graphs.contains(span.record)) continue;
    simulate::Span& all = whole.try_emplace(span.record, span).first->second;
    all.start_ns = std::min(all.start_ns, span.start_ns);
    all.end_ns = std::max(all.end_ns, span.end_ns);
  }
  for (const auto& [correlation, span] : whole) {
    auto* record = room<CUpti_ActivityGraphTrace>(a);
    if (record == nullptr) return;
    const Place place = places.of(span.stream);
    fill(a, *record, span, place);
    record->kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    record->graphId = graphs.at(correlation).graph;
    record->endDeviceId = place.device, record->endContextId = place.context;
  }
}

// In virtual time the client's counter is real: stamps are what it will take for the job's time.
void use_calibrations(Activities& a, std::uint64_t now) {
  constexpr std::uint64_t near = std::uint64_t{1} << 32;  // a second or two
  session::Calibration begin, end;
  if (session::counter_is_virtual()) return;
  if (!session::profiler_calibrations(begin, end) || now - end.ticks > near) return;
  a.time0 = begin.time, a.stamp0 = begin.ticks;
  a.stamps_per_ns =
      static_cast<double>(end.ticks - begin.ticks) / static_cast<double>(end.time - begin.time);
}

}  // namespace

void set_buffers(Request* request, Complete* complete) {
  Activities& a = activities();
  std::lock_guard guard(a.mutex);
  a.request = request, a.complete = complete;
}

void set_clock(std::uint64_t (*clock)()) { clock_callback = clock; }

std::uint64_t stamp_now() {
  if (auto* clock = clock_callback.load()) return clock();
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000ull +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void enable(CUpti_ActivityKind kind, bool on) {
  const auto index = static_cast<std::size_t>(kind);
  if (index >= kinds) return;
  Activities& a = activities();
  bool starts = false, ends = false;
  {
    std::lock_guard guard(a.mutex);
    if (a.enabled[index] == on) return;
    a.enabled[index] = on;
    if (on) a.wanted[index] = true;
    starts = on && a.count++ == 0;
    ends = !on && --a.count == 0;
  }
  if (starts) {
    session::counter_follows_time();
    session::observe_live_device(observe);
    std::lock_guard guard(a.mutex);
    a.time0 = session::live_now();
    a.stamp0 = stamp_now();
  }
  if (ends) session::observe_live_device(nullptr);
}

void push_external(int kind, std::uint64_t id) {
  if (kind < 0 || kind >= external_kinds) return;
  stacks[kind].push_back(id);
}

bool pop_external(int kind, std::uint64_t* id) {
  if (kind < 0 || kind >= external_kinds || stacks[kind].empty()) return false;
  if (id != nullptr) *id = stacks[kind].back();
  stacks[kind].pop_back();
  return true;
}

void flush(bool finish) {
  Activities& a = activities();
  const std::vector<simulate::Span> spans = session::live_take_spans(finish);
  const std::uint64_t stamp1 = stamp_now();
  const std::int64_t time1 = session::live_now();
  std::lock_guard guard(a.mutex);
  if (a.request == nullptr || a.complete == nullptr) return;
  if (time1 > a.time0)
    a.stamps_per_ns = static_cast<double>(stamp1 - a.stamp0) / static_cast<double>(time1 - a.time0);
  use_calibrations(a, stamp1);
  const Places places;
  for (const External& e : a.externals)
    if (a.wanted[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
      if (auto* record = room<CUpti_ActivityExternalCorrelation>(a))
        *record = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                   static_cast<CUpti_ExternalCorrelationKind>(e.kind), e.id, e.correlation, 0};
  Graphs graphs = launched_graphs(a);
  for (const Api& call : a.calls) write(a, call, places);
  write_events(a, spans, places);
  write_graphs(a, spans, places, graphs);
  for (const simulate::Span& span : spans) write(a, span, places, graphs);
  a.externals.clear();
  a.calls.clear();
  if (a.buffer != nullptr) a.complete(nullptr, 0, a.buffer, a.size, a.used);
  a.buffer = nullptr;
  a.wanted = a.enabled;
}

std::size_t record_size(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace);
    default:
      return 0;
  }
}

}  // namespace maya::cupti
