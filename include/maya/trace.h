// The recording of one rank: the calls that its process made to the device, in order.
//
// A recording is a sequence of 16-byte records that refer to tables of definitions (ops, strings,
// graphs, communicators). docs/FORMAT.md specifies the file; this header is what readers of a
// recording use.
//
//   Result<trace::Recording> recording = trace::read("maya-runs/demo/rank-0.maya");
//   if (!recording) return recording.error();
//   for (const trace::Record& r : recording->records)
//     if (r.kind == trace::Kind::launch) use(recording->ops[r.value]);
//
// Order: records are in the order in which the calls entered the device, over all threads.
//
// Host time: `host_ns` is the CPU time that the calling thread spent outside Maya since its
// previous record. A record with Flag::resumed comes from a thread that was blocked before (by a
// lock, a queue or another thread's work). It cannot have started before the preceding record, of
// any thread, was issued. Without the flag, threads run in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "maya/op.h"
#include "maya/result.h"

namespace maya::trace {

inline constexpr std::uint32_t format_version = 1;

// Append only; the numbers are part of the format.
enum class Kind : std::uint8_t {
  none = 0,
  host_gap,  // value: microseconds of host time to add to the thread's next record
  wide,      // first half of a two-record entry: see Wide
  // Work on a stream. value: index of the op
  launch,  // kernel or library call
  copy,    // Op is a Copy; Flag::blocking: the host waits for it
  fill,
  collective,      // aux: slot of the communicator; Op is a Collective
  point_to_point,  // aux: slot of the communicator; Op is a PointToPoint
  group_begin,
  group_end,      // NCCL group: the calls of this thread in between are one fused launch
  host_function,  // a callback that the stream runs
  graph_launch,   // value: index of the graph
  // Events and streams. value: event (ids are never reused)
  event_record,       // on `stream`
  stream_wait_event,  // `stream` waits for the latest event_record of event `value`
  event_synchronize,
  event_query,  // recorded only if the program's behaviour depended on the answer (rare)
  stream_synchronize,
  device_synchronize,
  stream_create,  // stream id in `stream`; aux: priority + 1000; flags: Flag::non_blocking
  stream_destroy,
  // Memory. Wide entries: x = MemoryKind, y = bytes; value: number of the allocation
  allocate,
  release,  // cudaFree, which waits for the device; with Flag::async cudaFreeAsync, stream-ordered
  // Communicators. value: slot
  communicator_create,
  communicator_destroy,
  // Annotations. value: index of a string
  range_push,
  range_pop,
  mark,
  // The framework reported the end of a step (profiler.step, optimizer hooks). The string names the
  // source.
  step_boundary,
  // The emulated GPU refused an allocation. Wide: y = requested bytes; value: MemoryKind.
  out_of_memory,
  // Blocks that PyTorch's caching allocator hands out of its segments and gets back. Recorded only
  // if some ranks of the job do not run: collate derives from them how much memory those ranks
  // would use. They carry no host time. The address is x (upper half) and value; for a release, aux
  // and value.
  tensor_allocate,  // Wide: y = bytes; stream: the stream's number in PyTorch
  tensor_release,
  // NB: add at the end.
};

enum Flag : std::uint8_t {
  none_flag = 0,
  resumed = 1,       // see above
  blocking = 2,      // the host waits until the work is done
  non_blocking = 4,  // stream_create: does not synchronize with the legacy default stream
  async = 8,
  captured = 16,  // part of a graph capture (only in definitions of graphs)
  legacy = 32,    // on the legacy default stream (stream 0), which synchronizes with all blocking
                  // streams
  threads_set = 64,  // host_gap: the program chose its number of threads (OMP_NUM_THREADS)
  sleeps = 128,      // host_gap: after it the thread waited for another one
};

struct Record {
  Kind kind{};
  std::uint8_t flags{};
  std::uint16_t thread{};
  std::uint32_t host_ns{};
  std::uint16_t stream{};
  std::uint16_t aux{};
  std::uint32_t value{};
};
static_assert(sizeof(Record) == 16);

// Precedes an allocate, release, out_of_memory or tensor_allocate and holds its large operands.
struct Wide {
  Kind kind{Kind::wide};
  std::uint8_t pad{};
  std::uint16_t thread{};
  std::uint32_t x{};
  std::uint64_t y{};
};
static_assert(sizeof(Wide) == 16);

enum class MemoryKind : std::uint8_t {
  device,
  pool,
  mapped /* cuMemMap */,
  managed,
  pinned,
  context,
  communicator /* NCCL's buffers */
};

struct GraphNode {
  Record record;                     // launch, copy, fill, collective …; stream and thread unused
  std::vector<std::uint32_t> after;  // indices of the nodes it depends on
};
struct Graph {
  std::vector<GraphNode> nodes;  // in topological order
};

// A communicator as one member sees it.
struct Communicator {
  // The same on all members: a hash of the unique id, or of the parent's id, the number of the
  // split and its colour.
  std::uint64_t id{};
  std::int32_t rank{}, size{};
  std::uint64_t parent{};  // id of the communicator it was split from; 0: made from a unique id
  std::string name;        // given by the framework; may be empty
  // The members as ranks of the job, in communicator order. Empty: not known.
  std::vector<std::int32_t> ranks{};
};

struct Count {
  std::string name;
  std::uint64_t count{};
};

// The process that was recorded. Written once, at the first call to the device.
struct Identity {
  std::int32_t rank{}, local_rank{}, world_size{1}, node{}, device{};
  std::uint64_t pid{};
  std::string gpu;      // catalogue name of the emulated GPU
  std::string cluster;  // as given to --cluster
  std::string command;
  std::uint64_t memory_capacity{};  // bytes that cudaMalloc can allocate
  std::uint64_t memory_context{};   // bytes of context, modules and communicators at the start
  // NCCL_*, CUDA_* and TORCH_* variables that influence the job.
  std::vector<std::pair<std::string, std::string>> environment;
  // Of cudart, cudnn, nccl and torch, as detected in the process.
  std::vector<std::pair<std::string, std::string>> versions;
};

struct Recording {
  Identity identity;
  std::vector<Op> ops;
  std::vector<std::string> strings;
  std::vector<Graph> graphs;
  std::vector<Communicator> communicators;  // by slot, the index that records use
  std::vector<Record> records;
  std::vector<Count>
      unimplemented_calls;      // functions without a body, and how often they were called
  std::vector<Count> warnings;  // for example "read of unknown bytes"
  bool complete{};              // false: the process crashed or was killed
};

// Reads rank-N.maya, and rank-N.maya.tail if the process was killed. The bytes are not trusted:
// every index of the result is within its table. The process may still be writing: then the result
// is what it had recorded at some moment during the call.
//
// With `enough_records` reading stops after the block that brings the recording to so many.
inline constexpr std::size_t all_records = ~std::size_t{0};
Result<Recording> read(const std::string& path, std::size_t enough_records = all_records);

std::string_view name(Kind kind);

}  // namespace maya::trace
