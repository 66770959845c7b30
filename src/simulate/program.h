// A job compiled for the simulator: for each class, the calls of each host thread and the items of
// each stream, as dense arrays. Everything that depends on the order of records is resolved here,
// so that the event loop works only with integers:
//  - which record of an event a wait refers to (the latest one before it in the recording),
//  - what the legacy default stream waits for and what waits for it,
//  - which calls of different ranks meet (by sequence numbers of communicators and channels),
//  - graphs, which are expanded into chains of nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/estimate.h"
#include "maya/job.h"
#include "maya/network.h"
#include "maya/result.h"
#include "simulate/model.h"

namespace maya::simulate {

inline constexpr std::uint32_t none = 0xffffffff;

enum class ItemKind : std::uint8_t { kernel, copy, communication, host_function, record, wait };

// One entry of a stream, in issue order.
struct Item {
  std::uint32_t instruction{};  // the host call that issues it
  std::uint32_t index{};        // kernel, copy: op. communication: its entry. record, wait: ticket
  ItemKind kind{};
  bool in_graph{};  // a node of a graph, which has a shorter gap before it
  bool closes{};    // frees a place of the launch queue at its end
};

// A stream, or a chain of graph nodes that runs in parallel with the stream of its graph.
struct LaneProgram {
  std::vector<Item> items;
  std::uint16_t stream{}, device{};
  std::int32_t priority{};               // as in CUDA: lower numbers have priority
  std::uint32_t log_begin{}, log_end{};  // items of the step whose critical path is computed
};

// One host call.
struct Instruction {
  std::int64_t cpu_ns{};  // host time before the call
  std::uint32_t record{};
  std::uint32_t next{none};  // the thread's next instruction
  std::uint32_t lane{none};  // the lane that gets an item; see lane_list
  std::uint32_t queue_place{
      none};  // waits until the lane has closed all places `queue_depth` below
  std::uint32_t waits_begin{}, waits_end{};  // range in Program::waits: tickets to wait for
  std::int32_t call_ns{};
  std::uint16_t thread{};  // index into Program::threads
  bool resumed{};
  bool ends_step{};  // the last instruction before a step boundary
  bool lane_list{};  // `lane` is an index into Program::lane_lists
};

struct Thread {
  std::uint32_t first{none};
  std::uint16_t id{};  // as in the recording
};

enum class Resource : std::uint8_t { compute, to_device, to_host, peer, free };
inline constexpr std::size_t resource_count = 5;

// The time of one op of the class when it runs alone, and the resources it uses.
struct WorkTime {
  std::int64_t ns{1};
  std::uint32_t share{one};
  Resource resource{Resource::compute};
  bool memory_bound{};
  std::uint32_t blocks{};  // see Model::product_blocks
  double low_ns{}, high_ns{};
};

inline constexpr std::uint8_t messages_family = 2;
struct CommunicationTime {
  std::int64_t ns{1};
  std::uint32_t share{};
  std::uint8_t family{};   // for errors; 0: within a node, 1: between nodes, 2: messages
  std::uint32_t memory{};  // share of the memory bandwidth that it takes
  network::Load load;      // on the ports of the class's representative
  double low_ns{}, high_ns{};
};

// One (fused) communication call.
struct Communication {
  std::uint32_t time{};  // index into Program::communication_times
  std::uint32_t record{}, op{};
  std::uint32_t first{}, last{};                // MeetReferences to begin
  std::uint32_t finish_first{}, finish_last{};  // MeetReferences to end together
  std::uint16_t slot{};
  std::int64_t number{-1};  // the same on all members of a collective
};

// The end of step k of the class: the tickets of the lanes, and the last host call.
struct StepProgram {
  std::uint32_t tickets{};   // number of tickets
  std::uint32_t host{none};  // the last instruction
};

struct Program {
  std::vector<Instruction> instructions;  // in record order
  std::vector<Thread> threads;
  std::vector<LaneProgram> lanes;
  std::uint32_t devices{1};  // number of GPUs of the process that have work
  std::vector<std::uint32_t> waits;
  std::vector<std::uint32_t> lane_lists;  // count, lanes…
  std::uint32_t tickets{};
  std::vector<std::uint32_t> ticket_step;  // per ticket: the boundary it belongs to, or none
  std::vector<StepProgram> boundaries;     // per entry of RankClass::step_begin
  std::vector<WorkTime> times;             // per op
  std::vector<CommunicationTime> communication_times;
  std::vector<Communication> communications;
  std::uint32_t log_begin{}, log_end{};  // instructions of the logged step
  std::uint64_t works{};
};

// A meeting of several parties. It is complete when all of them have arrived.
struct Meet {
  std::uint32_t missing{};
};
// A party of a meeting. The event loop links the waiting ones into a list.
struct MeetReference {
  std::uint32_t meet{};
};

struct Plan {
  Model model;
  std::vector<Program> classes;
  std::vector<Meet> meets;
  std::vector<MeetReference> references;
  network::Ports port_capacity{};
  std::int64_t log_step{-1};  // the step whose critical path is computed
};

// `log_step` is the index of a detected step, or -1.
Result<Plan> compile(const job::Job& job, const Model& model, const estimate::Estimator& estimator,
                     const network::Network& network, std::int64_t log_step);

}  // namespace maya::simulate
