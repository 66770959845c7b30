#include "report/assumptions.h"

#include <algorithm>
#include <map>

#include "maya/assumed.h"

namespace maya::report {
namespace {

// Warnings of the recorder that are assumptions, with the text for the user. The share of the step
// that depends on them is not known.
constexpr std::pair<std::string_view, std::string_view> assumed_values[] = {
    {"boolean masks of unknown values (treated as all true)",
     "masks computed on the GPU select every element"},
    {"masks of unknown values (every place taken as chosen)",  // in older recordings
     "masks computed on the GPU select every element"},
};

// Whether a measured step has an update of an optimizer of this class. (Each update is recorded
// with the name of its optimizer.)
bool updates_with(const job::Job& job, std::string_view optimizer) {
  const std::string source = "optimizer " + std::string(optimizer) + " ";
  for (const job::RankClass& c : job.classes)
    for (const Range& step : measured_steps(job, c))
      for (std::uint32_t i = step.begin; i < step.end; ++i) {
        const trace::Record& record = c.recording.records[i];
        if (record.kind == trace::Kind::step_boundary &&
            record.value < c.recording.strings.size() &&
            c.recording.strings[record.value].starts_with(source))
          return true;
      }
  return false;
}

}  // namespace

bool is_assumption(std::string_view warning) {
  return std::any_of(std::begin(assumed_values), std::end(assumed_values),
                     [&](const auto& entry) { return entry.first == warning; });
}

std::string assumption_about(const Op& op) {
  if (const auto* triton = std::get_if<TritonKernel>(&op.work); triton && !triton->exact)
    return "compiled kernels whose loop bounds are not known do as much work as their grids "
           "suggest";
  if (const auto* gemm = std::get_if<Gemm>(&op.work); gemm && gemm->experts > 0 && !gemm->dealt)
    return "each expert of a mixture is equally likely to be chosen for a token";
  if (op.name.ends_with(sizes_assumed))
    return std::holds_alternative<Attention>(op.work)
               ? "attention over sequences of unknown lengths: one sequence of all tokens, or "
                 "equal "
                 "ones"
               : "kernels whose sizes could not be read work on as much as their arguments allow";
  if (std::holds_alternative<OtherKernel>(op.work))
    return "kernels without a model access the memory of their arguments once";
  return "";
}

std::vector<Assumption> assumptions_of(const job::Job& job, const simulate::Timeline& timeline,
                                       const std::vector<OpUse>& uses) {
  std::map<std::string, double> times;
  double total = 0;
  for (const OpUse& use : uses) {
    const job::RankClass& rank_class = job.classes[use.rank_class];
    const double ns = use.ns * static_cast<double>(use.count * rank_class.ranks.size());
    total += ns;
    if (const std::string what = assumption_about(rank_class.recording.ops[use.op]); !what.empty())
      times[what] += ns;
  }
  std::vector<Assumption> result;
  for (const auto& [what, ns] : times)
    if (total > 0 && ns > 0) result.push_back({what, ns / total});

  double host = 0, path = 0;
  for (const simulate::CriticalLink& link : timeline.critical_path) {
    const auto ns = static_cast<double>(link.end_ns - link.start_ns);
    path += ns;
    if (link.what == simulate::CriticalLink::What::host) host += ns;
  }
  if (host > 0.01 * path)
    result.push_back(
        {"the target's host runs the program as fast as this machine's benchmark "
         "suggests",
         host / path});
  std::stable_sort(result.begin(), result.end(),
                   [](const Assumption& a, const Assumption& b) { return *a.share > *b.share; });

  for (const auto& [warning, what] : assumed_values) {
    auto was_given = [name = warning](const job::RankClass& c) {
      return std::any_of(c.recording.warnings.begin(), c.recording.warnings.end(),
                         [name](const trace::Count& count) { return count.name == name; });
    };
    if (std::any_of(job.classes.begin(), job.classes.end(), was_given))
      result.push_back({std::string(what), std::nullopt});
  }
  // It iterates until gradients and losses meet its limits; here they read as zero.
  if (updates_with(job, "LBFGS"))
    result.push_back(
        {"L-BFGS evaluates the model once in each update; with real values it does so up to "
         "max_eval times (25 unless set), and a step takes as much longer",
         std::nullopt});
  return result;
}

}  // namespace maya::report
