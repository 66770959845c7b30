#include "predict/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/fit.h"
#include "predict/reuse.h"
#include "predict/run_directory.h"

namespace maya::predict {
namespace {

constexpr std::uint64_t most_operations = 4'000'000;  // a few seconds for all of them

struct Change {
  std::string what;
  std::string cluster;  // empty: the same
  std::pair<std::string, std::string> setting;
};

std::string without_count(const std::string& spec) { return spec.substr(0, spec.find(':')); }

double best_peak(const catalog::Gpu& gpu) {
  double best = 0;
  for (const auto& [type, tflops] : gpu.peak_tflops)
    if (type == DType::bf16 || type == DType::f16) best = std::max(best, tflops);
  return best;
}

// The cluster of the catalogue with the same number of GPUs per node and the next faster GPU of
// another generation. If there are several, the one with the most similar name ("dgx-a100" →
// "dgx-h100").
const catalog::Cluster* next_cluster(const catalog::Catalog& catalog, const catalog::Cluster& now) {
  const catalog::Cluster* next = nullptr;
  auto alike = [&](const catalog::Cluster& one) {
    const auto& a = one.name;
    const auto& b = now.name;
    return std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first -
           a.begin();
  };
  for (const catalog::Cluster& one : catalog.clusters()) {
    if (one.gpus_per_node != now.gpus_per_node || one.nvswitch != now.nvswitch ||
        one.gpu.architecture == now.gpu.architecture || best_peak(one.gpu) <= best_peak(now.gpu))
      continue;
    if (next == nullptr || best_peak(one.gpu) < 0.99 * best_peak(next->gpu) ||
        (best_peak(one.gpu) < 1.01 * best_peak(next->gpu) && alike(one) > alike(*next)))
      next = &one;
  }
  return next;
}

const catalog::Gpu* next_gpu(const catalog::Catalog& catalog, const catalog::Gpu& now) {
  const catalog::Gpu* next = nullptr;
  for (const catalog::Gpu& one : catalog.gpus())
    if (one.architecture != now.architecture && best_peak(one) > best_peak(now) &&
        one.memory_bytes >= now.memory_bytes / 2 &&
        (next == nullptr || best_peak(one) < best_peak(*next)))
      next = &one;
  return next;
}

std::vector<Change> changes_for(const catalog::Catalog& catalog, const Outcome& outcome) {
  std::vector<Change> changes;
  const catalog::Cluster& now = outcome.cluster;
  if (outcome.prediction.breakdown.communication > 0) {
    changes.push_back({"links and network cards twice as fast", "", {"communication", "0.5"}});
    changes.push_back({"communication takes no time", "", {"communication", "0"}});
  }
  changes.push_back({"an infinitely fast host", "", {"host.speed", "1000"}});
  if (now.world_size() > 1) {
    if (const catalog::Cluster* next = next_cluster(catalog, now))
      changes.push_back({fmt::format("{} in place of {}", next->gpu.name, now.gpu.name),
                         fmt::format("{}:{}", without_count(next->name), now.nodes),
                         {}});
  } else if (const catalog::Gpu* next = next_gpu(catalog, now.gpu)) {
    changes.push_back({fmt::format("{} in place of {}", next->name, now.gpu.name), next->name, {}});
  }
  return changes;
}

}  // namespace

std::vector<report::WhatIf> what_would_help(const Run& run, const std::string& directory,
                                            const Options& options, const Outcome& outcome,
                                            Reuse& models) {
  const auto catalog = models.catalog();
  if (!catalog) return {};
  if (outcome.prediction.out_of_memory)
    return what_would_fit(run, directory, options, outcome, models);
  if (!outcome.prediction.step || outcome.timeline.simulated_ops > most_operations) return {};
  std::vector<report::WhatIf> found;
  for (const Change& change : changes_for(**catalog, outcome)) {
    Options asked = options;
    asked.keep_spans = asked.what_ifs = false;
    asked.reuse = &models;
    report::WhatIf one;
    one.what = change.what;
    one.command = "maya predict " + directory;
    if (!change.cluster.empty()) {
      asked.cluster = change.cluster;
      without_gpu(asked.settings);
      one.command += " --cluster " + change.cluster;
    } else {
      asked.settings.push_back(change.setting);
      one.command += fmt::format(" --set {}={}", change.setting.first, change.setting.second);
    }
    const auto then = predict_recorded(run, directory, asked);
    if (!then)
      one.problem = then.error().message;
    else if (then->prediction.out_of_memory)
      one.problem = "does not fit into its memory";
    if (then && then->prediction.step) one.ms = then->prediction.step->ms;
    found.push_back(std::move(one));
  }
  if (auto batch = larger_batch(outcome)) found.push_back(std::move(*batch));
  return found;
}

}  // namespace maya::predict
