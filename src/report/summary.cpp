#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "maya/report.h"
#include "report/ending.h"
#include "report/format.h"
#include "report/paint.h"

namespace maya::report {
namespace {

constexpr int label_width = 12, value_width = 22;
constexpr std::size_t most_memory_lines = 4, most_note_lines = 6;

// The lines of the summary. A section has a label in the left column and text to the right of it.
class Page {
 public:
  Page(const Style& style) : style_(style), paint(style) {}
  void line(const std::string& text = "") {
    text_ += text;
    text_.erase(text_.find_last_not_of(' ') + 1);
    text_ += '\n';
  }
  void labelled(const std::string& label, const std::string& text, Colour colour = Colour::bold) {
    line("  " + paint(colour, fit(label, label_width)) + text);
  }
  int room() const { return style_.width - 4 - label_width; }
  std::string text() const { return text_; }

 private:
  Style style_;
  std::string text_;

 public:
  Paint paint;
};

std::string found_by_words(const StepTime& step) {
  const std::string what = step.found_by == "annotation"  ? "marked by the framework"
                           : step.found_by == "optimizer" ? "detected by the optimizer"
                           : step.found_by == "backward"  ? "detected by backward passes"
                           : step.found_by == "period"    ? "detected by repetition"
                           : step.found_by == "user"      ? "as given by --steps"
                                                          : "";
  if (step.found_by == "whole_run")
    return "the whole run after initialization: no step was detected";
  return fmt::format("{} step{}, {}", step.count, step.count == 1 ? "" : "s", what);
}

void head(Page& page, const Prediction& p, const Style& style) {
  const std::string where =
      fmt::format("{} rank{}{} on {}{}", p.world_size, p.world_size == 1 ? "" : "s",
                  p.gpus > p.world_size ? fmt::format(" with {} GPUs", p.gpus) : "", p.cluster,
                  p.gpu.empty() || p.gpu == p.cluster ? "" : " (" + p.gpu + ")");
  const int room = style.width - 2 - columns(where) - 2;
  const std::string command = p.command.empty() ? "a recorded run" : p.command;
  page.line();
  page.line("  " + page.paint(Colour::bold, fit(command, std::max(20, room - 2))) + "  " +
            page.paint(Colour::cyan, where));
  if (!p.settings.empty()) {
    std::string text;
    for (const auto& [key, value] : p.settings)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
    page.line("  " + page.paint(Colour::yellow, "what if " + text));
  }
  page.line();
}

// The cost of a step, or of 1000 or a million steps if a step costs too little.
std::string price_of(double usd_per_step) {
  if (usd_per_step >= 0.01) return human_usd(usd_per_step) + " a step";
  if (usd_per_step >= 1e-6) return human_usd(1000 * usd_per_step) + " / 1000 steps";
  return human_usd(1e6 * usd_per_step) + " / M steps";
}

void step(Page& page, const Prediction& p) {
  if (!p.step) {
    const std::string what = p.no_step.empty() ? "no step was completed" : p.no_step;
    const char* label = "Result";
    for (const std::string& line : wrap(what, page.room()))
      page.labelled(label, page.paint(Colour::red, line)), label = "";
    if (p.out_of_memory)
      for (const std::string& text : explanation(*p.out_of_memory))
        for (const std::string& line : wrap(text, page.room())) page.labelled("", line);
    page.line();
    return;
  }
  const StepTime& s = *p.step;
  page.labelled("Step",
                page.paint(Colour::green, fit(human_ms(s.ms), value_width)) +
                    fmt::format("{} {} {} (80 %)   {}", human_ms(s.low_ms), page.paint.range(),
                                human_ms(s.high_ms), found_by_words(s)));
  if (p.throughput) {
    const Throughput& t = *p.throughput;
    std::string rate = human_count(t.per_second) + " " + t.unit + "/s";
    if (std::ssize(rate) < value_width) rate = fit(rate, value_width);
    std::string text =
        rate + (rate.back() == ' ' ? "" : "  ") + human_count(t.per_step) + " a step";
    if (p.gpus > 1) text += fmt::format(", {}/s per GPU", human_count(t.per_second / p.gpus));
    page.labelled("Throughput", text);
  } else {
    page.labelled("Throughput",
                  "not known: set it with --set tokens_per_step=N (or images_, samples_)");
  }
  if (p.mfu)
    page.labelled("MFU", fit(fmt::format("{:.1f} %", 100 * *p.mfu), value_width) +
                             fmt::format("of the {} peak, {} a step", p.mfu_dtype,
                                         human_flops(p.flops_per_step)));
  if (p.cost.usd_per_gpu_hour > 0)
    page.labelled("Cost", fit(price_of(p.cost.usd_per_step), value_width) +
                              fmt::format("{} an hour, {} per GPU",
                                          human_usd(p.cost.usd_per_gpu_hour * p.gpus),
                                          human_usd(p.cost.usd_per_gpu_hour)));
  page.line();
}

void breakdown(Page& page, const Prediction& p, const Style& style) {
  if (!p.step || p.step->ms <= 0) return;
  const BreakdownMs& b = p.breakdown;
  struct Named {
    const char* name;
    double ms;
    Colour colour;
    int texture;
  };
  // Waiting is shown separately if it is visible, else it is part of communication.
  const double seen = 0.005 * p.step->ms;
  const double bubble = b.pipeline_bubble >= seen ? b.pipeline_bubble : 0;
  const double waiting = b.waiting >= seen ? b.waiting : 0;
  const std::vector<Named> parts{
      {"compute", b.compute, Colour::green, 0},
      {"exposed communication", std::max(0.0, b.exposed_communication - bubble - waiting),
       Colour::magenta, 1},
      {"pipeline bubble", bubble, Colour::red, 4},
      {"waiting for ranks", waiting, Colour::cyan, 5},
      {"copy", b.copy, Colour::blue, 2},
      {"idle", b.idle, Colour::yellow, 3}};
  double total = 0;
  for (const Named& part : parts) total += part.ms;
  if (total <= 0) return;
  std::vector<Paint::Part> bar;
  std::vector<std::string> legend;
  for (const Named& part : parts) {
    bar.push_back({part.ms / total, part.colour, part.texture});
    if (part.ms <= 0) continue;
    legend.push_back(page.paint.swatch(bar.back()) + " " + fit(part.name, 22) +
                     fit_right(human_ms(part.ms), 9) + fit_right(percent(part.ms / total), 8));
  }
  page.labelled("Time", page.paint.bar(bar, std::min(page.room(), style.width - 16)));
  for (std::size_t i = 0; i < legend.size(); i += 2)
    page.labelled("", legend[i] + (i + 1 < legend.size() ? "    " + legend[i + 1] : ""));
  std::string more;
  if (b.communication > 0)
    more = fmt::format("communication {} in total, {} of it overlapped", human_ms(b.communication),
                       percent(std::max(0.0, 1 - b.exposed_communication / b.communication)));
  if (b.host_bound > 0.005 * total)
    more += fmt::format("{}the GPU waits {} for the host", more.empty() ? "" : "; ",
                        human_ms(b.host_bound));
  if (!more.empty()) page.labelled("", more);
  page.line();
}

void memory(Page& page, const Prediction& p) {
  // One line for all ranks that need the same memory, the fullest first.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>> groups;
  for (const RankMemory& m : p.memory) groups[{-m.peak_bytes, m.capacity_bytes}].push_back(m.rank);
  std::size_t shown = 0;
  for (const auto& [key, ranks] : groups) {
    const auto peak = static_cast<double>(-key.first), capacity = static_cast<double>(key.second);
    if (shown == most_memory_lines) {
      page.labelled(
          "", fmt::format("and {} further groups of ranks that need less", groups.size() - shown));
      break;
    }
    const double share = capacity > 0 ? peak / capacity : 0;
    const Colour colour = share > 1 ? Colour::red : share > 0.95 ? Colour::yellow : Colour::green;
    const std::string who = p.world_size == 1 ? ""
                            : ranks.size() == static_cast<std::size_t>(p.world_size)
                                ? "every rank"
                                : (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks);
    const std::vector<Paint::Part> bar{{std::min(share, 1.0), colour, 0},
                                       {1 - std::min(share, 1.0), Colour::faint, 3}};
    page.labelled(
        shown == 0 ? "Memory" : "",
        page.paint.bar(bar, 32) + fmt::format("  {} of {}  {}  {}", human_bytes(peak),
                                              human_bytes(capacity), percent(share), who));
    ++shown;
  }
  if (p.out_of_memory && p.step) {
    for (const std::string& line : wrap(headline(*p.out_of_memory), page.room()))
      page.labelled("", page.paint(Colour::red, line));
    for (const std::string& text : explanation(*p.out_of_memory))
      for (const std::string& line : wrap(text, page.room())) page.labelled("", line);
  }
  if (!p.memory.empty() || p.out_of_memory) page.line();
}

void costs(Page& page, const Prediction& p) {
  if (p.largest_costs.empty()) return;
  for (std::size_t i = 0; i < p.largest_costs.size(); ++i) {
    const LargestCost& cost = p.largest_costs[i];
    page.labelled(i == 0 ? "Largest" : "", fit(cost.what, 33) + fit_right(human_ms(cost.ms), 9) +
                                               fit_right(percent(cost.share), 8));
    page.labelled("", page.paint(Colour::faint, "  " + cost.help));
  }
  page.line();
}

void coverage(Page& page, const Prediction& p) {
  const Coverage& c = p.coverage;
  const char* dot = page.paint.dot();
  page.labelled("Coverage",
                fmt::format("measured {} {} fitted {} {} first principles {} {} unknown {}",
                            percent(c.measured), dot, percent(c.fitted), dot,
                            percent(c.first_principles), dot, percent(c.unknown)));
  if (!c.unknown_kernels.empty()) {
    const KernelShare& worst = c.unknown_kernels[0];
    page.labelled("",
                  fmt::format("{} unknown kernel{}; the largest, {}: {}", c.unknown_kernels.size(),
                              c.unknown_kernels.size() == 1 ? "" : "s", percent(worst.share),
                              fit(worst.name, std::min(columns(worst.name), 44))));
  }
  if (!c.unimplemented_calls.empty()) {
    std::string names;
    for (std::size_t i = 0; i < c.unimplemented_calls.size() && i < 3; ++i)
      names += (i ? ", " : "") + c.unimplemented_calls[i].name;
    if (c.unimplemented_calls.size() > 3)
      names += fmt::format(" and {} more", c.unimplemented_calls.size() - 3);
    page.labelled("", page.paint(Colour::yellow, "functions that are not emulated: " + names));
  }
  const char* label = "Assumed";
  for (const Assumption& assumption : p.assumptions) {
    if (assumption.share && *assumption.share < 0.02) continue;
    const std::string weight =
        assumption.share ? fmt::format(" ({} of the step)", percent(*assumption.share)) : "";
    const std::vector<std::string> wrapped = wrap(assumption.what + weight, page.room() - 2);
    for (std::size_t i = 0; i < wrapped.size(); ++i, label = "")
      page.labelled(label, (i == 0 ? "- " : "  ") + wrapped[i]);
  }
  std::size_t lines = 0, shown = 0;
  for (const std::string& note : p.notes) {
    const std::vector<std::string> wrapped = wrap(note, page.room());
    if (lines + wrapped.size() > most_note_lines) break;
    for (std::size_t i = 0; i < wrapped.size(); ++i)
      page.labelled(lines++ == 0 ? "Notes" : "", (i == 0 ? "- " : "  ") + wrapped[i],
                    Colour::yellow);
    ++shown;
  }
  if (shown < p.notes.size())
    page.labelled("", fmt::format("and {} more in prediction.json", p.notes.size() - shown));
}

}  // namespace

std::string summary(const Prediction& prediction, const Style& style) {
  Page page(style);
  head(page, prediction, style);
  step(page, prediction);
  breakdown(page, prediction, style);
  memory(page, prediction);
  costs(page, prediction);
  coverage(page, prediction);
  return page.text();
}

}  // namespace maya::report
