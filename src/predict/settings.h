// The settings of `--set key=value`.
//
//   communication=0           communication takes no time (0.5: half its time, 2: twice its time)
//   scale.<family>=0.5        this family of work takes half its time. A family is an op kind
//                             (gemm, attention, pointwise …) or a collective (all_reduce …)
//   tokens_per_step=N, samples_per_step=N, images_per_step=N   for the throughput
//   any other key             a key of the cluster: network.nic_gbps, host.speed, gpu.memory_gbps …
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "maya/report.h"
#include "maya/result.h"

namespace maya::predict {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Settings {
  std::map<std::string, double> scale;  // family → factor
  double communication{1};
  std::optional<report::StepUnits> units;
  Pairs cluster;  // for Catalog::cluster

  double factor(const Work& work) const;
  bool changes_time() const { return communication != 1 || !scale.empty(); }
};

Result<Settings> parse_settings(const Pairs& pairs);

// "key=value" as on the command line.
Result<std::pair<std::string, std::string>> split_setting(const std::string& text);

}  // namespace maya::predict
