// The answer for the user: a Prediction, computed from a simulated job, and the formats it is
// written in (terminal, JSON, HTML, traces).
//
//   Prediction p = report::predict(job, timeline, models, cluster);
//   fmt::print("{}", report::summary(p));
//   write(directory + "/prediction.json", report::to_json(p));
//
// Times are in milliseconds and sizes in bytes, as in prediction.json. The version of that file is
// 1: fields may be added, never renamed. docs/prediction.md describes each field.
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

// Means over the ranks. compute + exposed_communication + copy + idle = step. host_bound is the
// part of idle in which the host had not issued work yet. pipeline_bubble (a stage waited for
// another stage) and waiting (a rank waited for slower ranks) are the parts of
// exposed_communication in which no data was transferred.
struct BreakdownMs {
  double compute{}, communication{}, exposed_communication{}, copy{}, idle{}, host_bound{};
  double pipeline_bubble{}, waiting{};
};

struct RankMemory {
  std::int32_t rank{};
  std::int64_t peak_bytes{};          // what nvidia-smi would show at the peak
  std::int64_t reserved_bytes{};      // peak of the program's allocations (max_memory_reserved)
  std::int64_t context_bytes{};       // CUDA context, modules
  std::int64_t communicator_bytes{};  // NCCL's buffers
  std::int64_t capacity_bytes{};      // the GPU's memory
  // How often PyTorch's allocator ran out of memory, released its cache and tried again. Each retry
  // slows the step down.
  std::uint32_t allocator_retries{};
};

// One stage of a pipeline.
struct PipelineStage {
  std::int32_t rank{};      // the rank of this stage in the pipeline that rank 0 belongs to
  std::int32_t ranks{};     // number of ranks of the job at this stage
  std::int32_t stand_in{};  // the recorded rank whose recording is used
  bool recorded{};          // false: the stage did not run; the order of its work was derived
};

struct MemoryPart {
  std::string what;
  std::int64_t bytes{};
};

struct OutOfMemory {
  std::int32_t rank{};
  std::int64_t requested_bytes{}, in_use_bytes{}, capacity_bytes{};
  bool during_run{};             // an allocation failed in the run; else a what-if does not fit
  std::string where{};           // "in the first forward pass"; empty: not known
  std::int64_t missing_bytes{};  // lower bound of what is missing
  std::optional<std::int64_t> estimated_missing_bytes{};  // estimate of what is missing
  std::vector<MemoryPart> in_use{};                       // what the memory was used for
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

// Shares of the predicted GPU time by the origin of the durations (estimate::Origin). They sum to
// one.
struct Coverage {
  double measured{}, fitted{}, first_principles{}, unknown{};
  std::vector<KernelShare> unknown_kernels;
  std::vector<trace::Count> unimplemented_calls;
};

// One of the largest costs of a step, and advice how to reduce it.
struct LargestCost {
  std::string what;
  double ms{};     // on the critical path of a step
  double share{};  // of the step
  std::string help;
};

// Time of one family of work on the critical path of a step, with its 80 % interval. The error of a
// family is the same in two configurations of a job, so their difference is more accurate than
// either of them.
struct FamilyCost {
  std::string family;
  double ms{}, low_ms{}, high_ms{};
};

// Something that was assumed because it cannot be known.
struct Assumption {
  std::string what;
  std::optional<double> share;  // share of the step that depends on it; nullopt: not known
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
  std::int32_t gpus{1};  // more than world_size if a process drives several
  std::int32_t rank_classes{1};
  std::vector<std::pair<std::string, std::string>> settings;  // what-ifs, as given to --set
  std::optional<StepTime> step;  // nullopt if the run ended before a step was complete
  std::string no_step;           // in that case, one sentence that says what happened
  BreakdownMs breakdown;
  double flops_per_step{};    // of GEMMs, convolutions, attention …, over all ranks
  std::optional<double> mfu;  // relative to the GPU's dense peak for `mfu_dtype`
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
  double common_error{};  // error that all families have in common, as a share of the step
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;  // shown to the user
};

// The number of tokens, images or samples of a step, as given by the user. Without it the number is
// derived from the shape of the loss or the input.
struct StepUnits {
  std::string unit;
  double per_step{};
};

struct Models {
  const estimate::Estimator& estimator;
  const network::Network& network;
};

struct Ending;  // report/ending.h

// `ending` describes how the command ended if it failed; null if it succeeded.
Prediction predict(const job::Job& job, const simulate::Timeline& timeline, const Models& models,
                   const catalog::Cluster& cluster, const std::optional<StepUnits>& units = {},
                   const Ending* ending = nullptr);

std::string to_json(const Prediction& prediction);
// `where` names the file in error messages.
Result<Prediction> from_json(const std::string& text, const std::string& where);

struct Style {
  bool colour{};
  bool unicode{true};
  int width{100};
};
// The style that the terminal supports, from stdout and the environment (NO_COLOR, TERM, LC_ALL).
Style style_of_stdout();

// The summary that `maya run` prints: at most 40 lines.
std::string summary(const Prediction& prediction, const Style& style = {});

// Two or more predictions side by side. The others are compared with the first.
std::string comparison(const std::vector<std::pair<std::string, Prediction>>& runs,
                       const Style& style = {});

// --- Traces. They need a timeline that was simulated with simulate::Options::keep_spans. Each
// function returns the bytes of the file.

// Jobs of more than sixteen ranks show one rank of each class.
std::string perfetto_trace(const job::Job& job, const simulate::Timeline& timeline);
std::string chrome_trace(const job::Job& job, const simulate::Timeline& timeline);
std::string csv_trace(const job::Job& job, const simulate::Timeline& timeline);
// MLCommons Chakra execution trace of one rank: GlobalMetadata, then Nodes, length-delimited.
std::string chakra_trace(const job::Job& job, const simulate::Timeline& timeline,
                         std::int32_t rank);
// comm_groups.json for ASTRA-sim: the members of each communicator, by the number that the nodes of
// chakra_trace() use.
std::string chakra_groups(const job::Job& job);
// report.html: one self-contained page without external resources.
std::string html_page(const Prediction& prediction, const job::Job& job,
                      const simulate::Timeline& timeline);

}  // namespace maya::report
