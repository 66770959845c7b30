// The recording of one rank: what its process asked of the device, in order.
//
// A recording is a sequence of 16-byte records over tables of definitions (ops, strings, graphs,
// communicators, streams). docs/FORMAT.md gives the bytes. This header is what readers see.
//
// Order: records stand in the order in which the calls entered the device, over all threads.
// Host time: `host_ns` is the CPU time the calling thread spent since its previous record, outside
// Maya. A record with Flag::resumed comes from a thread that had been asleep (a lock, a queue,
// another thread's work): it cannot have started before the record in front of it, of whatever
// thread, was issued. Without the flag, threads run beside each other.
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
  host_gap,  // value: further microseconds of host time before the next record of the thread
  wide,      // first half of a two-record entry: see Wide
  // Work on a stream. value: op
  launch,  // kernel or library call
  copy,    // Op is a Copy; Flag::blocking: the host waits for it
  fill,
  collective,      // aux: communicator; Op is a Collective
  point_to_point,  // aux: communicator; Op is a PointToPoint
  group_begin,
  group_end,      // NCCL group: what lies between on this thread is one fused launch
  host_function,  // a callback the stream runs
  graph_launch,   // value: graph
  // Events and streams. value: event (ids are never reused)
  event_record,       // on `stream`
  stream_wait_event,  // `stream` waits for event `value`'s latest record
  event_synchronize,
  event_query,  // recorded only where the answer steered the program (rarely)
  stream_synchronize,
  device_synchronize,
  stream_create,  // stream id in `stream`; aux: priority + 1000; flags: Flag::non_blocking
  stream_destroy,
  // Memory. Wide entries: x = memory kind, y = bytes; value: allocation
  allocate,
  release,  // release of device memory waits for the device (cudaFree); Flag::async: stream ordered
  // Communicators. value: communicator id of this rank
  communicator_create,
  communicator_destroy,
  // Annotations. value: string
  range_push,
  range_pop,
  mark,
  step_boundary,  // the framework said a step ended (profiler.step, optimizer hooks); value:
                  // string, its source
  out_of_memory,  // Wide: y = bytes asked; value: allocation kind. The emulated GPU refused.
  // Pieces that PyTorch's caching allocator hands out of its segments and takes back. Only recorded
  // where a job runs in part: collate works out from them what ranks that did not run would hold.
  // They carry no host time. Address: x (upper half) and value; of a release: aux and value.
  tensor_allocate,  // Wide: y = bytes; stream: PyTorch's number of the stream it belongs to
  tensor_release,
  // NB: add at the end.
};

enum Flag : std::uint8_t {
  none_flag = 0,
  resumed = 1,       // see above
  blocking = 2,      // the host waits until the work is done
  non_blocking = 4,  // stream_create: does not synchronize with the legacy default stream
  async = 8,
  captured = 16,  // part of a graph capture (kept only inside graph definitions)
  legacy = 32,  // issued to the legacy default stream (stream 0): orders with all blocking streams
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

// The record before an allocate/release/out_of_memory: its wide operands.
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
  Record record;                     // launch, copy, fill, collective, … ; stream/thread unused
  std::vector<std::uint32_t> after;  // indices of nodes it waits for
};
struct Graph {
  std::vector<GraphNode> nodes;  // in topological order
};

struct Communicator {
  std::uint64_t
      id{};  // equal on all members: hash of unique id, or of parent id, split order and colour
  std::int32_t rank{}, size{};
  std::uint64_t parent{};  // 0: from a unique id
  std::string name;        // what the framework calls it, if it says
  // Its members as ranks of the job, in order, where that is known. Empty: not known.
  std::vector<std::int32_t> ranks{};
};

struct Count {
  std::string name;
  std::uint64_t count{};
};

// Who was recorded: written once when the device is first touched.
struct Identity {
  std::int32_t rank{}, local_rank{}, world_size{1}, node{}, device{};
  std::uint64_t pid{};
  std::string gpu;      // catalogue name of the emulated GPU
  std::string cluster;  // as given to --cluster
  std::string command;
  std::uint64_t memory_capacity{};  // bytes a cudaMalloc can reach
  std::uint64_t memory_context{};   // taken by context, modules and communicators at start
  std::vector<std::pair<std::string, std::string>>
      environment;                                            // NCCL_*, CUDA_*, TORCH_* that matter
  std::vector<std::pair<std::string, std::string>> versions;  // cudart, cudnn, nccl, torch as seen
};

struct Recording {
  Identity identity;
  std::vector<Op> ops;
  std::vector<std::string> strings;
  std::vector<Graph> graphs;
  std::vector<Communicator> communicators;  // index = communicator number in records
  std::vector<Record> records;
  std::vector<Count> unimplemented_calls;  // function → calls
  std::vector<Count> warnings;             // e.g. "read of unknown bytes"
  bool complete{};                         // closed properly; else cut off by a crash or a kill
};

// Reads rank-N.maya (and its unfinished tail, if the process died). Never trusts the bytes.
Result<Recording> read(const std::string& path);

std::string_view name(Kind kind);

}  // namespace maya::trace
