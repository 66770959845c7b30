// Compiles the records of one process, record by record, into host calls, items of lanes and
// tickets. The simulator compiles a whole recording with it; the live model (live.h) compiles each
// call when the program makes it. Both therefore have the same rules of order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "maya/estimate.h"
#include "simulate/graph_chains.h"
#include "simulate/lanes.h"
#include "simulate/program.h"

namespace maya::simulate {

// How long an op takes when it runs alone, and the resources of the GPU that it uses.
WorkTime work_time(const Op& op, const Model& model, const estimate::Estimator& estimator);

// Lanes are numbered in order of first use, streams and chains of graphs together.
class RecordCompiler {
 public:
  RecordCompiler(const RecordCompiler&) = delete;
  RecordCompiler& operator=(const RecordCompiler&) = delete;

 protected:
  explicit RecordCompiler(const Model& model) : model_(model), lanes_(program_) {}
  ~RecordCompiler() = default;

  // The index of the communication of one launch in Program::communications.
  virtual std::uint32_t communication(std::uint32_t record, std::uint16_t slot,
                                      std::span<const std::uint32_t> ops) = 0;
  // Graphs are numbered in the order in which they are added. The compiler keeps a pointer to them.
  void add_graph(const trace::Graph& graph);
  void add(std::uint32_t index, const trace::Record& r);
  // To be called when everything that was added is complete: the program starts again from the
  // beginning, and its streams are kept.
  void forget();

  const Model& model_;
  Program program_;
  Lanes lanes_;
  std::unordered_map<std::uint32_t, std::uint32_t> events_;  // event → ticket of its latest record

 private:
  struct Group {
    int depth{};
    struct Call {
      std::uint32_t record;
      std::uint16_t stream, slot;
      std::uint8_t flags;
      std::uint32_t op;
    };
    std::vector<Call> calls;
  };

  struct ThreadState {
    std::uint16_t number{};
    std::uint32_t last{none};
    std::uint64_t gap_ns{};
    Group group;
  };

  void begin_instruction(std::uint32_t index, const trace::Record& r);
  bool frees_device_memory() const;
  void flush(Group& group);
  void launch_graph(const trace::Record& r);

  std::vector<const trace::Graph*> graphs_;
  std::vector<GraphChains> chains_;
  std::vector<ThreadState> threads_;
  trace::Record wide_{};
  bool has_wide_{};
};

}  // namespace maya::simulate
