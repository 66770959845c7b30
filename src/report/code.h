// Where in the user's program the time of a step goes: by line, by module, by stack.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/simulate.h"
#include "report/places.h"

namespace maya::report {

// Per step; `ms` and `backward_ms` are device time of the mean rank, the rest is time on the
// critical path.
struct CodeCost {
  double ms{}, backward_ms{};  // all of it; the part in backward passes
  double communication_ms{};   // part of `ms`: collectives and messages
  double critical_ms{};        // on the critical path: what is gone if the line were gone
  double exposed_ms{};         // part of it: communication that nothing hides
  double idle_ms{};            // part of it: the GPU waits for the host or for nothing
  double count{};              // kernels, copies and collectives
};

struct LineCost : CodeCost {
  std::string file, function, source;  // source: the text of the line, where it can be read
  int line{};
};

struct ModuleCost : CodeCost {
  std::string path;  // "blocks.3.up"
};

struct CodeCosts {
  std::vector<LineCost> lines;      // by descending critical time
  std::vector<ModuleCost> modules;  // leaves, by path
  // Device time in ns by "outermost;…;innermost;op", for flame graphs.
  std::map<std::string, double> stacks;
  double known{};  // share of the device time whose place is known
  bool changed{};  // a source file is newer than the recording: its text is left out
  bool empty() const { return lines.empty(); }
};

// `places`: of each class; empty ones where nothing is known. `recorded`: when, as file time.
CodeCosts code_costs(const job::Job& job, const simulate::Timeline& timeline,
                     const std::vector<Places>& places, std::int64_t recorded_ns);

std::string collapsed_stacks(const CodeCosts& costs);  // for flamegraph.pl and others
std::string speedscope(const CodeCosts& costs, const std::string& name);

}  // namespace maya::report
