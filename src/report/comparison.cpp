#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "maya/report.h"
#include "report/format.h"
#include "report/paint.h"

namespace maya::report {
namespace {

constexpr int label_width = 24;

struct Row {
  const char* label;
  std::function<std::optional<double>(const Prediction&)> value;
  std::function<std::string(double)> text;
  int better;  // +1 more is better, -1 less is better, 0 neither
};

std::int64_t peak_memory(const Prediction& p) {
  std::int64_t peak = 0;
  for (const RankMemory& memory : p.memory) peak = std::max(peak, memory.peak_bytes);
  return peak;
}

std::vector<Row> rows() {
  using P = const Prediction&;
  auto step = [](double value, P p) { return p.step ? std::optional(value) : std::nullopt; };
  return {
      {"step", [](P p) { return p.step ? std::optional(p.step->ms) : std::nullopt; }, human_ms, -1},
      {"  low", [](P p) { return p.step ? std::optional(p.step->low_ms) : std::nullopt; }, human_ms,
       0},
      {"  high", [](P p) { return p.step ? std::optional(p.step->high_ms) : std::nullopt; },
       human_ms, 0},
      {"throughput / s",
       [](P p) { return p.throughput ? std::optional(p.throughput->per_second) : std::nullopt; },
       human_count, 1},
      {"MFU", [](P p) { return p.mfu; },
       [](double share) { return fmt::format("{:.1f} %", 100 * share); }, 1},
      {"compute", [=](P p) { return step(p.breakdown.compute, p); }, human_ms, -1},
      {"communication", [=](P p) { return step(p.breakdown.communication, p); }, human_ms, -1},
      {"  exposed", [=](P p) { return step(p.breakdown.exposed_communication, p); }, human_ms, -1},
      {"copy", [=](P p) { return step(p.breakdown.copy, p); }, human_ms, -1},
      {"idle", [=](P p) { return step(p.breakdown.idle, p); }, human_ms, -1},
      {"  host-bound", [=](P p) { return step(p.breakdown.host_bound, p); }, human_ms, -1},
      {"  pipeline bubble", [=](P p) { return step(p.breakdown.pipeline_bubble, p); }, human_ms,
       -1},
      {"peak memory", [](P p) { return std::optional(static_cast<double>(peak_memory(p))); },
       human_bytes, -1},
      {"cost of a step",
       [](P p) {
         return p.step && p.cost.usd_per_gpu_hour > 0 ? std::optional(p.cost.usd_per_step)
                                                      : std::nullopt;
       },
       human_usd, -1},
      {"unknown kernels", [](P p) { return std::optional(p.coverage.unknown); }, percent, 0},
  };
}

// Whether a change is worth showing: parts below a hundredth of the step are not.
bool matters(const Row& row, double value, const Prediction& first) {
  const auto* shown_by = row.text.target<std::string (*)(double)>();
  const bool is_time = shown_by != nullptr && *shown_by == &human_ms;
  return !is_time || !first.step || value >= 0.01 * first.step->ms;
}

}  // namespace

std::string comparison(const std::vector<std::pair<std::string, Prediction>>& runs,
                       const Style& style) {
  const Paint paint(style);
  const int column = 24;
  std::string page = "\n";
  auto line = [&page](std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    page += "  " + text + "\n";
  };
  auto heading = [&](const char* label, const std::function<std::string(const Prediction&)>& text) {
    std::string row = fit(label, label_width);
    for (const auto& [name, prediction] : runs) row += fit(text(prediction), column - 2) + "  ";
    line(row);
  };
  std::string names = fit("", label_width);
  for (const auto& [name, prediction] : runs)
    names += paint(Colour::bold, fit(name, column - 2)) + "  ";
  line(names);
  heading("cluster", [](const Prediction& p) { return p.cluster; });
  heading("ranks", [](const Prediction& p) { return std::to_string(p.world_size); });
  if (std::any_of(runs.begin(), runs.end(),
                  [](const auto& run) { return !run.second.settings.empty(); }))
    heading("what if", [](const Prediction& p) {
      std::string text;
      for (const auto& [key, value] : p.settings)
        text += (text.empty() ? "" : ", ") + key + "=" + value;
      return text;
    });
  page += "\n";

  for (const Row& row : rows()) {
    const std::optional<double> first = row.value(runs[0].second);
    bool any = false;
    std::string text = fit(row.label, label_width);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::optional<double> value = row.value(runs[i].second);
      any |= value && *value != 0;
      std::string cell = value ? row.text(*value) : "-";
      std::string change;
      Colour colour = Colour::plain;
      if (i > 0 && value && first && *first > 0 && row.better != 0 &&
          matters(row, std::max(*value, *first), runs[0].second)) {
        const double ratio = *value / *first - 1;
        if (ratio > 0.0005 || ratio < -0.0005) {
          change = fmt::format("{:+.1f} %", 100 * ratio);
          colour = ratio * row.better > 0 ? Colour::green : Colour::red;
        }
      }
      text += fit(cell, 12) + paint(colour, fit(change, column - 12));
    }
    if (any) line(text);
  }
  for (const auto& [name, prediction] : runs)
    if (prediction.out_of_memory)
      line(paint(Colour::red, fmt::format("{}: out of memory on rank {}", name,
                                          prediction.out_of_memory->rank)));
  return page;
}

}  // namespace maya::report
