// What a simulated job tells its user: a Prediction, and the forms it is read in.
//
//   Prediction p = report::predict(job, timeline, models, cluster);
//   fmt::print("{}", report::summary(p));
//   write(directory + "/prediction.json", report::to_json(p));
//
// Times are milliseconds and sizes bytes, as in prediction.json (version 1: fields may be added,
// never renamed).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "maya/catalog.h"
#include "maya/estimate.h"
#include "maya/job.h"
#include "maya/network.h"
#include "maya/result.h"
#include "maya/simulate.h"

namespace maya::report {

struct StepTime {
  double ms{}, low_ms{}, high_ms{};  // mean over the measured steps, 80 % interval
  std::uint32_t count{};
  std::string found_by;  // "annotation", "optimizer", "period", "user", "whole_run"
  std::vector<double> each_ms;  // every detected step, those that are not measured too
};

// Mean over the ranks. compute + exposed_communication + copy + idle = step, up to what overlaps
// copies; host_bound is the part of idle in which the host had not issued work yet. Parts of
// exposed_communication in which nothing was transferred: pipeline_bubble (a stage waited for
// another stage) and waiting (for slower ranks).
struct BreakdownMs {
  double compute{}, communication{}, exposed_communication{}, copy{}, idle{}, host_bound{};
  double pipeline_bubble{}, waiting{};
};

struct RankMemory {
  std::int32_t rank{};
  std::int64_t peak_bytes{};          // what nvidia-smi would show at the peak
  std::int64_t reserved_bytes{};      // peak of what the program took (torch: max_memory_reserved)
  std::int64_t context_bytes{};       // CUDA context, modules
  std::int64_t communicator_bytes{};  // NCCL's buffers
  std::int64_t capacity_bytes{};      // the GPU's memory
  // Times the allocator ran out, gave back its cache and went on: the step is slower for it.
  std::uint32_t allocator_retries{};
};

// One stage of a pipeline.
struct PipelineStage {
  std::int32_t rank{};      // its rank in the pipeline of rank 0
  std::int32_t ranks{};     // how many ranks of the job are at this stage
  std::int32_t stand_in{};  // the recorded rank whose work it does
  bool recorded{};          // false: the stage did not run, its order was worked out
};

struct MemoryPart {
  std::string what;
  std::int64_t bytes{};
};

struct OutOfMemory {
  std::int32_t rank{};
  std::int64_t requested_bytes{}, in_use_bytes{}, capacity_bytes{};
  bool during_run{};             // the emulated GPU refused; else a what-if on a smaller GPU
  std::string where{};           // "in the first forward pass"; empty: not known
  std::int64_t missing_bytes{};  // it does not fit by at least so much
  std::optional<std::int64_t> estimated_missing_bytes{};  // … and probably by so much
  std::vector<MemoryPart> in_use{};                       // what the memory was taken for
};

struct Cost {
  double usd_per_gpu_hour{}, usd_per_step{};
  std::string source;
};

struct Throughput {
  std::string unit;  // "tokens", "images" or "samples"
  double per_step{}, per_second{};
  std::string found_by;  // "input", "loss", "user"
};

struct KernelShare {
  std::string name;
  double share{};         // of predicted GPU time
  std::uint64_t count{};  // launches in the measured steps, over all ranks
};

// Shares of predicted GPU time by where its duration comes from; they sum to one.
struct Coverage {
  double measured{}, fitted{}, first_principles{}, unknown{};
  std::vector<KernelShare> unknown_kernels;
  std::vector<trace::Count> unimplemented_calls;
};

// One of the largest costs of a step, and what would help.
struct LargestCost {
  std::string what;
  double ms{};     // on the critical path of a step
  double share{};  // of the step
  std::string help;
};

// Time of one family of work on the critical path of a step, with its 80 % interval. Two
// configurations of a job share the error of a family, so that their difference is known better
// than either.
struct FamilyCost {
  std::string family;
  double ms{}, low_ms{}, high_ms{};
};

// What was assumed because it cannot be known.
struct Assumption {
  std::string what;
  std::optional<double> share;  // of the step that depends on it; none: not known
};

// Device time of one op of the job, per step, mean over the ranks.
struct OpCost {
  std::string kind, name, sizes;
  double count{}, ms{}, share{};  // per step and rank; share of predicted GPU time
  double tflops{}, gbps{};        // achieved
  std::string origin;
};

struct Prediction {
  std::string command, cluster, gpu;
  std::int32_t world_size{1};
  std::int32_t gpus{1};  // more than ranks where a process drives several
  std::int32_t rank_classes{1};
  std::vector<std::pair<std::string, std::string>> settings;  // what-ifs, as given to --set
  std::optional<StepTime> step;  // none when the run ended before a step was done …
  std::string no_step;           // … and then what happened, in one sentence
  BreakdownMs breakdown;
  double flops_per_step{};    // matrix work (GEMM, convolution, attention …) of all ranks
  std::optional<double> mfu;  // against the GPU's dense peak for `mfu_dtype`
  std::string mfu_dtype;
  std::optional<Throughput> throughput;
  std::vector<RankMemory> memory;     // every rank of the job, ascending
  std::vector<PipelineStage> stages;  // empty without a pipeline
  std::optional<OutOfMemory> out_of_memory;
  Cost cost;
  Coverage coverage;
  std::vector<LargestCost> largest_costs;  // at most three
  std::vector<OpCost> ops;                 // by descending time, at most fifty
  std::vector<FamilyCost> families;        // of the critical path, by descending time
  double common_error{};  // share of the step by which all families may be off together
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;  // what a user should know
};

// Work of a step when the user says so; else it is read off the loss, where there is one.
struct Work {
  std::string unit;
  double per_step{};
};

struct Models {
  const estimate::Estimator& estimator;
  const network::Network& network;
};

struct Ending;  // report/ending.h

// `ending`: how the command ended, where it did not end well.
Prediction predict(const job::Job& job, const simulate::Timeline& timeline, const Models& models,
                   const catalog::Cluster& cluster, const std::optional<Work>& work = {},
                   const Ending* ending = nullptr);

std::string to_json(const Prediction& prediction);
Result<Prediction> from_json(const std::string& text, const std::string& where);

struct Style {
  bool colour{};
  bool unicode{true};
  int width{100};
};
// What a terminal can show, from the stream and the environment (NO_COLOR, TERM, LC_ALL).
Style style_of_stdout();

// A page a person reads in ten seconds, at most 40 lines.
std::string summary(const Prediction& prediction, const Style& style = {});

// Two or more predictions side by side; the first is what the others are compared with.
std::string comparison(const std::vector<std::pair<std::string, Prediction>>& runs,
                       const Style& style = {});

// --- Timelines. They need a timeline with its spans kept (simulate::Options::keep_spans).

// Bytes of the file. Jobs of more than sixteen ranks show one rank of each class.
std::string perfetto_trace(const job::Job& job, const simulate::Timeline& timeline);
std::string chrome_trace(const job::Job& job, const simulate::Timeline& timeline);
std::string csv_trace(const job::Job& job, const simulate::Timeline& timeline);
// MLCommons Chakra execution trace of one rank: GlobalMetadata, then Nodes, length-delimited.
std::string chakra_trace(const job::Job& job, const simulate::Timeline& timeline,
                         std::int32_t rank);
// comm_groups.json for ASTRA-sim: the communicators by the number the nodes call them.
std::string chakra_groups(const job::Job& job);
// A page without external resources.
std::string html_page(const Prediction& prediction, const job::Job& job,
                      const simulate::Timeline& timeline);

}  // namespace maya::report
