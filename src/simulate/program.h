// A job compiled for the simulator: per class, what each host thread does and what each stream
// runs, as dense arrays. Everything that record order decides is decided here:
//  - which record of an event a wait refers to (the latest before it in the recording),
//  - what the legacy default stream waits for and who waits for it,
//  - which call of which rank meets which (sequence numbers of communicators and channels),
//  - graphs, expanded into chains of nodes,
// so that the event loop has only integers left.
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
  bool in_graph{};  // the gap before it is a graph's
  bool closes{};    // frees a place of the launch queue when done
};

// A stream, or a chain of graph nodes running beside the stream its graph was launched to.
struct LaneProgram {
  std::vector<Item> items;
  std::uint16_t stream{}, device{};
  std::int32_t priority{};               // lower goes first, as CUDA counts
  std::uint32_t log_begin{}, log_end{};  // items of the step whose critical path is wanted
};

// One host call.
struct Instruction {
  std::int64_t cpu_ns{};  // before the call
  std::uint32_t record{};
  std::uint32_t next{none};  // the thread's next
  std::uint32_t lane{none};  // gets an item; lane_list: several do
  std::uint32_t queue_place{
      none};  // waits until the lane has closed all places `queue_depth` below
  std::uint32_t waits_begin{}, waits_end{};  // tickets the host waits for, in Program::waits
  std::int32_t call_ns{};
  std::uint16_t thread{};  // index into Program::threads
  bool resumed{};
  bool ends_step{};  // the last before a step boundary
  bool lane_list{};  // `lane` is an index into Program::lane_lists
};

struct Thread {
  std::uint32_t first{none};
  std::uint16_t id{};  // as in the recording
};

enum class Resource : std::uint8_t { compute, to_device, to_host, peer, free };
inline constexpr std::size_t resource_count = 5;

// How long one op of the class takes alone.
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
  std::uint8_t family{};   // 0: within a node, 1: between nodes, 2: messages; err alike
  std::uint32_t memory{};  // share of the memory bandwidth it takes
  network::Load load;      // on the ports of the class's representative
  double low_ns{}, high_ns{};
};

// One (fused) communication call.
struct Communication {
  std::uint32_t time{};  // index into Program::communication_times
  std::uint32_t record{}, op{};
  std::uint32_t first{}, last{};                // MeetReferences: to begin
  std::uint32_t finish_first{}, finish_last{};  // to end together
  std::uint16_t slot{};
  std::int64_t number{-1};  // the same on all members of a collective
};

// End of step k of the class: tickets of the lanes and the host call that comes last.
struct StepProgram {
  std::uint32_t tickets{};   // how many
  std::uint32_t host{none};  // instruction
};

struct Program {
  std::vector<Instruction> instructions;  // in record order
  std::vector<Thread> threads;
  std::vector<LaneProgram> lanes;
  std::uint32_t devices{1};  // GPUs of the process that got work
  std::vector<std::uint32_t> waits;
  std::vector<std::uint32_t> lane_lists;  // count, lanes…
  std::uint32_t tickets{};
  std::vector<std::uint32_t> ticket_step;  // per ticket: boundary it is part of, or none
  std::vector<StepProgram> boundaries;     // per entry of RankClass::step_begin
  std::vector<WorkTime> times;             // per op
  std::vector<CommunicationTime> communication_times;
  std::vector<Communication> communications;
  std::uint32_t log_begin{}, log_end{};  // instructions of the step to trace
  std::uint64_t works{};
};

// A meeting of several parties: complete when all have come.
struct Meet {
  std::uint32_t missing{};
};
// A party's place at a meeting; the event loop links those that wait.
struct MeetReference {
  std::uint32_t meet{};
};

struct Plan {
  Model model;
  std::vector<Program> classes;
  std::vector<Meet> meets;
  std::vector<MeetReference> references;
  network::Ports port_capacity{};
  std::int64_t log_step{-1};  // the step whose critical path is kept
};

// `log_step`: index of a found step, or -1.
Result<Plan> compile(const job::Job& job, const Model& model, const estimate::Estimator& estimator,
                     const network::Network& network, std::int64_t log_step);

}  // namespace maya::simulate
