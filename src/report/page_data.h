// Everything that the page of a run shows (page.html).
#pragma once

#include <string>
#include <vector>

#include "maya/report.h"
#include "report/code.h"
#include "report/memory_profile.h"

namespace maya::report {

// The effect of one change, computed by simulating the run again.
struct WhatIf {
  std::string what;     // "communication takes no time"
  std::string command;  // the command that gives this prediction
  double ms{};          // the step with the change; 0: it could not be simulated
  std::string problem;  // why it could not be simulated
  // The memory of the fullest rank and of its GPU; 0: not computed.
  std::int64_t memory_bytes{}, capacity_bytes{};
};

struct PageData {
  const Prediction& prediction;
  const job::Job& job;
  const simulate::Timeline& timeline;
  const catalog::Cluster& cluster;
  const CodeCosts& code;
  const std::vector<MemoryProfile>& memory;
  const std::vector<WhatIf>& what_ifs;
  const std::string&
      serving;  // JSON of what a client of a serving engine saw; empty: there is none
};

// A self-contained page without external resources.
std::string html_page(const PageData& data);

// The fields of prediction.json that need the whole timeline: `code`, `memory_at_peak`,
// `communicators`, `what_if`.
std::string details_json(const PageData& data);

}  // namespace maya::report
