#include "shim/cupti/activity.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "session/observation.h"

using namespace maya::abi;
namespace session = maya::session;
using maya::trace::Kind;

namespace maya::cupti {
namespace {

constexpr std::size_t kinds = 64;
constexpr int external_kinds = 8;

struct Api {
  std::uint32_t cbid, correlation, thread;
  std::int64_t start, end;
  std::uint32_t sync;  // type of synchronization, 0: none
  std::uint16_t stream;
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

std::uint32_t cbid_of(Kind kind) {
  switch (kind) {
    case Kind::copy:
      return cbid_cudaMemcpyAsync;
    case Kind::fill:
      return cbid_cudaMemsetAsync;
    case Kind::host_function:
      return cbid_cudaLaunchHostFunc;
    case Kind::graph_launch:
      return cbid_cudaGraphLaunch;
    case Kind::event_record:
      return cbid_cudaEventRecord;
    case Kind::stream_wait_event:
      return cbid_cudaStreamWaitEvent;
    case Kind::event_synchronize:
      return cbid_cudaEventSynchronize;
    case Kind::stream_synchronize:
      return cbid_cudaStreamSynchronize;
    case Kind::device_synchronize:
      return cbid_cudaDeviceSynchronize;
    case Kind::allocate:
      return cbid_cudaMalloc;
    case Kind::release:
      return cbid_cudaFree;
    case Kind::launch:
    case Kind::collective:
    case Kind::point_to_point:
      return cbid_cudaLaunchKernel;
    default:
      return 0;
  }
}

std::uint32_t sync_type(Kind kind) {
  switch (kind) {
    case Kind::event_synchronize:
      return 1;
    case Kind::stream_wait_event:
      return 2;
    case Kind::stream_synchronize:
      return 3;
    case Kind::device_synchronize:
      return 4;
    default:
      return 0;
  }
}

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
  a.calls.push_back({cbid, correlation, static_cast<std::uint32_t>(pthread_self()), start, end,
                     sync_type(record.kind), record.stream});
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
  return "ncclDevKernel_" + function + "_" + std::string(enum_name(collective.reduce)) + "_" +
         std::string(enum_name(collective.dtype));
}

const char* kernel_name(Activities& a, std::uint32_t number, const Op& op) {
  auto [it, fresh] = a.names.try_emplace(number, nullptr);
  if (!fresh) return it->second;
  std::string name = op.name;
  if (std::holds_alternative<Collective>(op.work) || std::holds_alternative<PointToPoint>(op.work))
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

void write(Activities& a, const simulate::Span& span, const Places& places) {
  if (span.op == 0xffffffff) return;
  const Op op = session::observed_op(span.op);
  const Place place = places.of(span.stream);
  if (const auto* copy = std::get_if<Copy>(&op.work)) {
    if (!a.wanted[CUPTI_ACTIVITY_KIND_MEMCPY]) return;
    auto* record = room<CUpti_ActivityMemcpy>(a);
    if (record == nullptr) return;
    fill(a, *record, span, place);
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
  record->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record->completed = record->end;
  record->name = kernel_name(a, span.op, op);
  const Geometry& g = op.geometry;
  const bool known = g.blocks() > 0;
  auto size = [&](std::uint32_t value) { return known ? static_cast<std::int32_t>(value) : 1; };
  record->gridX = size(g.grid[0]), record->gridY = size(g.grid[1]), record->gridZ = size(g.grid[2]);
  record->blockX = size(g.block[0]), record->blockY = size(g.block[1]),
  record->blockZ = size(g.block[2]);
  record->registersPerThread = g.registers;
  record->dynamicSharedMemory = static_cast<std::int32_t>(g.shared_bytes);
}

void write(Activities& a, const Api& call, const Places& places) {
  const std::uint64_t start = stamp(a, call.start), end = stamp(a, call.end);
  if (a.wanted[CUPTI_ACTIVITY_KIND_RUNTIME])
    if (auto* record = room<CUpti_ActivityAPI>(a)) {
      *record = {CUPTI_ACTIVITY_KIND_RUNTIME,
                 call.cbid,
                 start,
                 end,
                 static_cast<std::uint32_t>(getpid()),
                 call.thread,
                 call.correlation,
                 0};
    }
  if (call.sync != 0 && a.wanted[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION])
    if (auto* record = room<CUpti_ActivitySynchronization>(a)) {
      const Place place = places.of(call.stream);
      record->kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
      record->type = call.sync;
      record->start = start, record->end = end;
      record->correlationId = call.correlation, record->contextId = place.context;
      record->streamId = call.sync == 2 || call.sync == 3 ? place.stream : ~std::uint32_t{0};
    }
}

// In virtual time the client's counter is real: stamps are what it will take for the job's time.
void use_calibrations(Activities& a, std::uint64_t now) {
  constexpr std::uint64_t near = std::uint64_t{1} << 32;  // a second or two
  session::Calibration begin, end;
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
  for (const Api& call : a.calls) write(a, call, places);
  for (const simulate::Span& span : spans) write(a, span, places);
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
    default:
      return 0;
  }
}

const char* runtime_name(std::uint32_t cbid) {
  switch (cbid) {
    case cbid_cudaMalloc:
      return "cudaMalloc_v3020";
    case cbid_cudaFree:
      return "cudaFree_v3020";
    case cbid_cudaMemcpyAsync:
      return "cudaMemcpyAsync_v3020";
    case cbid_cudaMemsetAsync:
      return "cudaMemsetAsync_v3020";
    case cbid_cudaStreamSynchronize:
      return "cudaStreamSynchronize_v3020";
    case cbid_cudaEventRecord:
      return "cudaEventRecord_v3020";
    case cbid_cudaEventSynchronize:
      return "cudaEventSynchronize_v3020";
    case cbid_cudaStreamWaitEvent:
      return "cudaStreamWaitEvent_v3020";
    case cbid_cudaDeviceSynchronize:
      return "cudaDeviceSynchronize_v3020";
    case cbid_cudaLaunchKernel:
      return "cudaLaunchKernel_v7000";
    case cbid_cudaLaunchHostFunc:
      return "cudaLaunchHostFunc_v10000";
    case cbid_cudaGraphLaunch:
      return "cudaGraphLaunch_v10000";
    default:
      return nullptr;
  }
}

}  // namespace maya::cupti
