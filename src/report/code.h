// The time of a step by place in the user's program: by line, by module and by stack.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/simulate.h"
#include "report/places.h"

namespace maya::report {

// Values are per step. The first three are device time, as a mean over the ranks; the next three
// are time on the critical path.
struct CodeCost {
  double ms{}, backward_ms{};  // total; the part in backward passes
  double communication_ms{};   // part of `ms`: collectives and messages
  double critical_ms{};        // on the critical path: saved if the line were removed
  double exposed_ms{};         // part of critical_ms: communication that is not overlapped
  double idle_ms{};            // part of critical_ms: the GPU is idle
  double count{};              // number of kernels, copies and collectives
};

struct LineCost : CodeCost {
  std::string file, function, source;  // source: the text of the line, if it can be read
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
  bool changed{};  // a source file is newer than the recording; its text is not shown
  bool empty() const { return lines.empty(); }
};

// `places` has one entry per class, which is empty if nothing is known. `recorded` is the time of
// the recording in ns, as the file system reports it.
CodeCosts code_costs(const job::Job& job, const simulate::Timeline& timeline,
                     const std::vector<Places>& places, std::int64_t recorded_ns);

std::string collapsed_stacks(const CodeCosts& costs);  // for flamegraph.pl and others
std::string speedscope(const CodeCosts& costs, const std::string& name);

}  // namespace maya::report
