#include "report/code.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/visible.h"
#include "report/scene.h"
#include "report/usage.h"

namespace maya::report {
namespace {

using What = simulate::CriticalLink::What;

// Lines of source files. Each file is read once.
class Sources {
 public:
  explicit Sources(std::int64_t recorded_ns) : recorded_ns_(recorded_ns) {}

  std::string line(const std::string& file, int number) {
    auto [found, added] = files_.try_emplace(file);
    if (added) found->second = read(file);
    const auto& lines = found->second;
    return number >= 1 && number <= static_cast<int>(lines.size()) ? lines[number - 1] : "";
  }
  bool changed() const { return changed_; }

 private:
  std::vector<std::string> read(const std::string& file) {
    struct stat info {};
    constexpr off_t most = 4 << 20;
    // A run from elsewhere may name any file of this machine, so only Python sources are quoted.
    const bool program = file.size() > 3 && file.compare(file.size() - 3, 3, ".py") == 0;
    if (!program || file[0] != '/' || stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size > most)
      return {};
    // The text of a file that was changed after the recording is not what ran.
    if (recorded_ns_ > 0 &&
        info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec > recorded_ns_) {
      changed_ = true;
      return {};
    }
    std::ifstream in(file);
    std::vector<std::string> lines;
    for (std::string text; std::getline(in, text);) {
      const std::size_t first = text.find_first_not_of(" \t");
      lines.push_back(first == std::string::npos ? "" : base::visible(text.substr(first, 200)));
    }
    return lines;
  }

  std::int64_t recorded_ns_;
  bool changed_{};
  std::map<std::string, std::vector<std::string>> files_;
};

std::string short_file(const std::string& file) {
  const std::size_t package = file.rfind("-packages/");
  if (package != std::string::npos) return file.substr(package + 10);
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? file : file.substr(slash + 1);
}

std::string plain(std::string text) {  // in collapsed stacks ";" separates frames and " " ends them
  std::replace(text.begin(), text.end(), ';', ',');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class Costs {
 public:
  Costs(const job::Job& job, const simulate::Timeline& timeline, const std::vector<Places>& places)
      : job_(job), timeline_(timeline), places_(places), steps_(measured_count(job)) {}

  CodeCosts sum(std::int64_t recorded_ns) {
    device();
    critical();
    CodeCosts costs;
    Sources sources(recorded_ns);
    for (auto& [key, cost] : lines_) {
      cost.source = sources.line(cost.file, cost.line);
      costs.lines.push_back(std::move(cost));
    }
    std::stable_sort(costs.lines.begin(), costs.lines.end(), [](const auto& a, const auto& b) {
      return std::tie(a.critical_ms, a.ms) > std::tie(b.critical_ms, b.ms);
    });
    constexpr std::size_t most_lines = 200;
    if (costs.lines.size() > most_lines) costs.lines.resize(most_lines);
    for (auto& [path, cost] : modules_) costs.modules.push_back(std::move(cost));
    costs.stacks = std::move(stacks_);
    costs.known = total_ > 0 ? known_ / total_ : 0;
    costs.changed = sources.changed();
    return costs;
  }

 private:
  std::uint32_t stack_of(std::uint32_t rank_class, std::uint32_t record) const {
    if (rank_class >= places_.size()) return no_stack;
    const auto& of_record = places_[rank_class].of_record;
    return record < of_record.size() ? of_record[record] : no_stack;
  }

  // Calls `change` for the line and the module of a place.
  template <class Change>
  void charge(std::uint32_t rank_class, std::uint32_t stack, Change&& change) {
    const Places& places = places_[rank_class];
    if (const Frame* own = places.own(stack)) {
      LineCost& line = lines_[{own->file, own->line}];
      line.file = own->file, line.line = own->line, line.function = own->function;
      change(line);
    }
    if (const std::uint32_t module = places.stacks[stack].module) {
      ModuleCost& cost = modules_[places.modules[module]];
      cost.path = places.modules[module];
      change(cost);
    }
  }

  void device() {
    std::vector<std::vector<Range>> measured;
    for (const job::RankClass& one : job_.classes) measured.push_back(measured_steps(job_, one));
    for (const simulate::Span& span : timeline_.spans) {
      if (span.rank_class >= job_.classes.size()) continue;
      const auto& steps = measured[span.rank_class];
      if (std::none_of(steps.begin(), steps.end(), [&](const Range& step) {
            return span.record >= step.begin && span.record < step.end;
          }))
        continue;
      const job::RankClass& one = job_.classes[span.rank_class];
      const double share =
          static_cast<double>(one.ranks.size()) / std::max(1, job_.world_size) / steps_;
      const double ns = static_cast<double>(span.end_ns - span.start_ns) * share;
      total_ += ns;
      const std::uint32_t stack = stack_of(span.rank_class, span.record);
      if (stack == no_stack) continue;
      known_ += ns;
      const bool backward = places_[span.rank_class].stacks[stack].backward;
      const bool known_op = span.op < one.recording.ops.size();
      const bool communicates = known_op && is_communication(one.recording.ops[span.op].work);
      charge(span.rank_class, stack, [&](CodeCost& cost) {
        cost.ms += ns / 1e6;
        cost.count += share;
        if (backward) cost.backward_ms += ns / 1e6;
        if (communicates) cost.communication_ms += ns / 1e6;
      });
      flame(span, stack, ns);
    }
  }

  void flame(const simulate::Span& span, std::uint32_t stack, double ns) {
    const Places& places = places_[span.rank_class];
    const job::RankClass& one = job_.classes[span.rank_class];
    std::string& prefix = prefixes_[{span.rank_class, stack}];
    if (prefix.empty()) {
      prefix = places.stacks[stack].backward ? "backward" : "program";
      const auto& frames = places.stacks[stack].frames;
      for (auto at = frames.rbegin(); at != frames.rend(); ++at) {
        const Frame& frame = places.frames[*at];
        // The frames that call a module add no information.
        if (frame.file.find("torch/nn/modules/module.py") != std::string::npos) continue;
        prefix += ";" + plain(fmt::format("{} ({}:{})", frame.function, short_file(frame.file),
                                          frame.line));
      }
    }
    const std::string op = span.op < one.recording.ops.size()
                               ? slice_name(one.recording.ops[span.op])
                               : std::string("host function");
    stacks_[prefix + ";" + plain(op)] += ns;
  }

  void critical() {
    for (const simulate::CriticalLink& link : timeline_.critical_path) {
      if (link.rank_class >= job_.classes.size()) continue;
      const std::uint32_t stack = stack_of(link.rank_class, link.record);
      if (stack == no_stack) continue;
      const double ms = static_cast<double>(link.end_ns - link.start_ns) / 1e6;
      charge(link.rank_class, stack, [&](CodeCost& cost) {
        cost.critical_ms += ms;
        if (link.what == What::communication) cost.exposed_ms += ms;
        if (link.what == What::host || link.what == What::wait) cost.idle_ms += ms;
      });
    }
  }

  const job::Job& job_;
  const simulate::Timeline& timeline_;
  const std::vector<Places>& places_;
  double steps_, total_{}, known_{};
  std::map<std::pair<std::string, int>, LineCost> lines_;
  std::map<std::string, ModuleCost> modules_;
  std::map<std::string, double> stacks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> prefixes_;
};

}  // namespace

CodeCosts code_costs(const job::Job& job, const simulate::Timeline& timeline,
                     const std::vector<Places>& places, std::int64_t recorded_ns) {
  if (std::all_of(places.begin(), places.end(), [](const Places& one) { return one.empty(); }))
    return {};
  return Costs(job, timeline, places).sum(recorded_ns);
}

std::string collapsed_stacks(const CodeCosts& costs) {
  std::string out;
  for (const auto& [stack, ns] : costs.stacks)
    if (ns >= 0.5) out += fmt::format("{} {:.0f}\n", stack, ns);
  return out;
}

std::string speedscope(const CodeCosts& costs, const std::string& name) {
  using Json = nlohmann::json;
  Json frames = Json::array(), samples = Json::array(), weights = Json::array();
  std::map<std::string, std::size_t> index;
  double total = 0;
  for (const auto& [stack, ns] : costs.stacks) {
    Json sample = Json::array();
    for (std::size_t begin = 0; begin <= stack.size();) {
      const std::size_t end = std::min(stack.find(';', begin), stack.size());
      const std::string frame = stack.substr(begin, end - begin);
      const auto [at, added] = index.try_emplace(frame, frames.size());
      if (added) frames.push_back({{"name", frame}});
      sample.push_back(at->second);
      begin = end + 1;
    }
    samples.push_back(std::move(sample));
    weights.push_back(ns);
    total += ns;
  }
  const Json file = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                     {"exporter", "maya"},
                     {"name", name},
                     {"activeProfileIndex", 0},
                     {"shared", {{"frames", frames}}},
                     {"profiles", Json::array({{{"type", "sampled"},
                                                {"name", "device time of a step"},
                                                {"unit", "nanoseconds"},
                                                {"startValue", 0},
                                                {"endValue", total},
                                                {"samples", samples},
                                                {"weights", weights}}})}};
  return file.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace maya::report
