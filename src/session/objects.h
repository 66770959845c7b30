// What the handles of runtime and driver stand for. Both libraries share them: a cudaStream_t is a
// CUstream.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "decode/decode.h"
#include "device/cubin.h"
#include "device/memory.h"
#include "device/slab.h"
#include "maya/trace.h"
#include "session/graphs.h"

namespace maya::session {

struct Graph;

// A capture in progress. Streams and events that take part point to it.
struct Capture {
  Graph* graph{};
  int mode{};  // 0 global, 1 thread local, 2 relaxed
  std::uint64_t id{};
  struct Stream* origin{};
  std::uint64_t thread{};
  bool invalidated{};
};

struct Stream {
  std::uint16_t id{};
  int device{};
  int priority{};
  unsigned flags{};  // 1: does not synchronize with the legacy default stream
  bool legacy{};
  bool announced{};  // its stream_create record is written
  Capture* capture{};
  std::vector<std::uint32_t> tips;  // while capturing: nodes the next one waits for
  double model_ns{};                // when the work queued so far would be done, in modelled time
  std::uint64_t unique{};
  bool busy{};            // work was queued since the host last waited for it
  std::uint16_t asked{};  // see progress.h
};

struct Event {
  std::uint32_t id{};
  unsigned flags{};  // 1 blocking sync, 2 no timing, 4 interprocess
  int device{};
  bool recorded{};
  double model_ns{};
  Capture* capture{};
  std::uint64_t capture_id{};
  std::vector<std::uint32_t> tips;
  // Of the latest record; see progress.h.
  std::uint64_t sequence{};
  std::uint16_t stream{}, thread{}, asked[2]{};
};

struct Function;

// What a node of a graph does to values, and which op it is, depends on the values at each launch.
struct Replayed {
  Function* function{};  // of a kernel
  Geometry geometry;
  std::vector<std::vector<char>> arguments;
  std::vector<void*> pointers;  // to the arguments
  std::function<void()> move;   // of a copy or fill
  std::uint32_t node{};         // in the recorded graph
};

struct Node {
  NodeType type{NodeType::empty};
  Graph* graph{};
  std::uint32_t index{};                     // within its graph
  std::vector<std::uint32_t> after;          // indices of nodes of the same graph
  trace::Record record{};                    // none: ordering only
  std::vector<char> parameters;              // as the program gave them, for GetParams
  std::vector<std::vector<char>> arguments;  // kernel argument bytes
  std::vector<void*> argument_pointers;
  Function* function{};              // of a kernel
  Geometry geometry;                 // of a kernel
  std::function<void()> move;        // values that a copy or fill moves at each launch
  Graph* child{};                    // child graph, or body of a conditional
  std::uint64_t address{}, bytes{};  // allocation nodes
  void (*host)(void*){};
  void* host_data{};
  bool removed{};
};

struct Graph {
  std::vector<Node*> nodes;
  Graph* owner{};  // of a child graph or body: the graph with the node it belongs to
  std::uint64_t unique{};
};

struct GraphExec {
  std::uint32_t definition{};  // number in the recording
  double model_ns{};
  trace::Graph recorded;           // with the ops of the moment it was made
  std::vector<Replayed> replayed;  // in an order that respects the edges
  struct Version {
    std::uint32_t definition{};
    double model_ns{};
  };
  std::unordered_map<std::uint64_t, Version> versions;  // by the ops of its kernels
  std::vector<std::pair<void (*)(void*), void*>> host_functions;
  std::vector<Node*> source;  // nodes it was made from, for updates
  Graph* changed{};           // nodes of this graph were exchanged since the last launch
};

// One fat binary, cubin or PTX that was registered or loaded. Unpacked when one of its kernels is
// first used.
struct Module {
  const void* data{};
  std::vector<char> copy;  // of loaded data; registered fat binaries stay in the program
  bool unpacked{};
  device::ImageFault fault{};
  std::vector<device::Image> ptx;  // kept for decoding
  std::unordered_map<std::string, device::KernelCode> kernels;
  std::unordered_map<std::string, std::uint64_t> variables;
  std::unordered_map<std::string, std::uint64_t> addresses;  // of variables handed out
  std::unordered_map<std::string, struct Function*> functions;
  std::string file;  // where it came from, if known
};

struct Function {
  Module* module{};
  std::string name;
  const void* host{};            // the stub that stands for it in compiled code, if any
  std::atomic<bool> resolved{};  // set last: launches read what stands below without a lock
  int fault{};                   // CUDA error a launch gets
  decode::Kernel kernel;
  device::KernelCode code;
  std::unique_ptr<decode::Decoder> decoder;
  bool touches_values{};
  std::int64_t touches_values_up_to{};
  bool counted_unknown{};
  int max_dynamic_shared{};
  int carveout{-1};
  // Seen launches: hash of key bytes and geometry → op. Open addressing, size a power of two.
  struct Seen {
    std::uint64_t hash{};
    std::uint32_t op{};
    std::uint32_t first_write{}, writes{};
    bool complete{};  // the writes are all there is to know about values: no need to decode again
    // The decoder does not say where it writes: any pointer may lead there. How far from one, and
    // how large an output is; both follow from the op, so it need not be decoded again either.
    bool anywhere{};
    std::uint64_t reach{}, output{};
  };
  std::vector<Seen> seen;
  std::size_t seen_count{};
  // Where the arguments hold the addresses a launch writes to, and how far it writes.
  struct Write {
    std::uint16_t parameter{}, offset{};
    std::uint64_t bytes{};
  };
  std::vector<Write> writes;
};

struct Pool {
  int device{};
  std::uint64_t release_threshold{};
  std::uint64_t used{}, used_high{}, reserved{}, reserved_high{};
  bool is_default{};
};

struct Physical {  // cuMemCreate
  int device{};
  std::uint64_t bytes{};
  std::uint32_t references{1};
};

}  // namespace maya::session
