// Everything the page of a run shows (page.html).
#pragma once

#include <string>
#include <vector>

#include "maya/report.h"
#include "report/code.h"
#include "report/memory_profile.h"

namespace maya::report {

// What a change would bring, found by simulating the run again.
struct WhatIf {
  std::string what;     // "communication takes no time"
  std::string command;  // what to type to get it
  double ms{};          // the step then; 0: it could not be simulated
  std::string problem;  // why not, or "does not fit"
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

// A page without external resources.
std::string html_page(const PageData& data);

// The additions to prediction.json that need the whole timeline: `code`, `memory_at_peak`,
// `communicators`, `what_if`.
std::string details_json(const PageData& data);

}  // namespace maya::report
