// One line per op that ran on a GPU, in order of class, stream and time.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "maya/report.h"
#include "op/text.h"
#include "report/format.h"

namespace maya::report {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string csv_trace(const job::Job& job, const simulate::Timeline& timeline) {
  std::string out =
      "ranks,stream,step,record,issue_us,start_us,duration_us,kind,name,sizes,collective\n";
  auto into = std::back_inserter(out);
  std::vector<const simulate::Span*> spans;
  for (const simulate::Span& span : timeline.spans)
    if (span.rank_class < job.classes.size()) spans.push_back(&span);
  auto order = [](const simulate::Span* s) {
    return std::tie(s->rank_class, s->start_ns, s->stream, s->record, s->op);
  };
  std::stable_sort(spans.begin(), spans.end(),
                   [&](const auto* a, const auto* b) { return order(a) < order(b); });
  std::vector<std::string> ranks;
  std::vector<std::vector<std::string>> ops(job.classes.size());  // "kind,name,sizes"
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    ranks.push_back(cell(rank_list(job.classes[c].ranks)));
    for (const Op& op : job.classes[c].recording.ops) {
      const std::string text = to_text(op.work, true);
      const std::size_t space = text.find(' ');
      ops[c].push_back(fmt::format("{},{},{}", kind_name(op.work), cell(op.name),
                                   cell(space == std::string::npos ? "" : text.substr(space + 1))));
    }
  }
  for (const simulate::Span* span : spans) {
    const auto& begin = job.classes[span->rank_class].step_begin;
    const auto after = std::upper_bound(begin.begin(), begin.end(), span->record);
    const bool inside = after != begin.begin() && after != begin.end();
    fmt::format_to(into, "{},{},{},{},{:.3f},{:.3f},{:.3f},{},{}\n", ranks[span->rank_class],
                   span->stream, inside ? std::to_string(after - begin.begin() - 1) : "",
                   span->record, static_cast<double>(span->issue_ns) / 1000,
                   static_cast<double>(span->start_ns) / 1000,
                   static_cast<double>(span->end_ns - span->start_ns) / 1000,
                   span->op < ops[span->rank_class].size() ? ops[span->rank_class][span->op]
                                                           : "host_function,,",
                   span->collective < 0 ? "" : std::to_string(span->collective));
  }
  return out;
}

}  // namespace maya::report
