#include "simulate/critical_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace maya::simulate {
namespace {

using What = CriticalLink::What;

class Walk {
 public:
  Walk(const Plan& plan, const std::vector<std::unique_ptr<Engine>>& engines, std::int64_t start)
      : plan_(plan), engines_(engines), start_(start) {
    for (const Program& program : plan.classes) {
      auto& previous = previous_.emplace_back(program.log_end - program.log_begin, none);
      std::vector<std::uint32_t> last(program.threads.size(), none);
      for (std::uint32_t i = program.log_begin; i < program.log_end; ++i) {
        std::uint32_t& of_thread = last[program.instructions[i].thread];
        previous[i - program.log_begin] = of_thread;
        of_thread = i;
      }
    }
  }

  std::vector<CriticalLink> run(Cause from, std::int64_t end) {
    time_ = end;
    at_ = from;
    at_end_ = true;
    while (time_ > start_ && step()) {
    }
    // The rest of the step was spent waiting for work of the step before.
    if (!links_.empty())
      link(What::wait, links_.back().rank_class, links_.back().record, none, start_, time_);
    std::reverse(links_.begin(), links_.end());
    return std::move(links_);
  }

 private:
  bool step() {
    if (at_.kind() == Cause::Kind::item) return item();
    if (at_.kind() == Cause::Kind::host) return host();
    return false;
  }

  void link(What what, std::uint32_t c, std::uint32_t record, std::uint32_t op, std::int64_t from,
            std::int64_t to) {
    from = std::max(from, start_), to = std::min(to, time_);
    if (to > from) links_.push_back({what, c, record, op, from, to});
    time_ = std::min(time_, from);
  }

  bool item() {
    std::uint32_t c = at_.rank_class();
    const Engine& engine = *engines_[c];
    const Program& program = plan_.classes[c];
    std::uint32_t log = engine.log_place(at_.index());
    if (log == none || engine.item_log()[log].end < 0) return false;
    const ItemLog& entry = engine.item_log()[log];
    Engine::ItemPlace place = engine.place(at_.index());
    const Item& item = program.lanes[place.lane].items[place.index];
    std::uint32_t record = program.instructions[item.instruction].record, op = item.index;
    What what = What::kernel;
    if (item.kind == ItemKind::communication) {
      what = What::communication;
      op = program.communications[item.index].op;
      record = program.communications[item.index].record;
    } else if (item.kind == ItemKind::host_function) {
      what = What::host, op = none;
    } else if (program.times[item.index].resource != Resource::compute) {
      what = What::copy;
    }
    link(What::wait, c, record, op, entry.end, time_);
    link(what, c, record, op, entry.start, entry.end);
    at_ = entry.cause;
    at_end_ = false;
    return true;
  }

  // The path reaches a host call at its end (from the thread's next call) or at its issue (from
  // work or another thread that waited for the call itself, not for what the call blocks on).
  bool host() {
    std::uint32_t c = at_.rank_class(), i = at_.index();
    const Program& program = plan_.classes[c];
    std::uint32_t place = i - program.log_begin;
    if (place >= engines_[c]->host_log().size()) return false;
    const HostLog& entry = engines_[c]->host_log()[place];
    if (entry.issue < 0) return false;
    std::uint32_t record = program.instructions[i].record;
    if (at_end_ && entry.end_cause.kind() != Cause::Kind::nothing) {
      at_ = entry.end_cause;
      at_end_ = false;
      return true;
    }
    link(What::wait, c, record, none, entry.issue, time_);
    if (entry.queue_cause.kind() != Cause::Kind::nothing && entry.queue_time > 0) {
      link(What::host, c, record, none, entry.queue_time, entry.issue);
      at_ = entry.queue_cause;
      at_end_ = false;
      return true;
    }
    link(What::host, c, record, none, entry.start, entry.issue);
    if (entry.start_cause.kind() != Cause::Kind::nothing) {
      at_ = entry.start_cause;
      at_end_ = false;
      return true;
    }
    if (previous_[c][place] == none) return false;
    at_ = Cause::host(c, previous_[c][place]);
    at_end_ = true;
    return true;
  }

  const Plan& plan_;
  const std::vector<std::unique_ptr<Engine>>& engines_;
  std::int64_t start_, time_{};
  Cause at_;
  bool at_end_{};
  std::vector<std::vector<std::uint32_t>> previous_;  // per class, per logged instruction
  std::vector<CriticalLink> links_;
};

}  // namespace

std::vector<CriticalLink> critical_path(const Plan& plan,
                                        const std::vector<std::unique_ptr<Engine>>& engines,
                                        std::uint32_t end_class, std::int64_t start,
                                        std::int64_t end) {
  const auto& boundary =
      engines[end_class]->accounting().boundaries()[static_cast<std::size_t>(plan.log_step) + 1];
  return Walk(plan, engines, start).run(boundary.cause, end);
}

Interval interval(const job::Job& job, const Plan& plan, const std::vector<CriticalLink>& path,
                  double step_ns) {
  struct Sums {
    double ns{}, down{}, up{};  // errors within a family are added linearly
  };
  std::map<std::string_view, Sums> families;
  double length = 0;
  // Where equal calls took unequal times, even the least of them were disturbed: by less than the
  // spread squared in the jobs that docs/simulation.md names. Disturbances only ever add.
  const double spread = std::max(job.host_spread, 1.0);
  const double host_down = spread > job::busy_host_spread
                               ? std::max(plan.model.host_uncertainty, 1 - 1 / (spread * spread))
                               : plan.model.host_uncertainty;
  auto add = [&](std::string_view family, double ns, double alone, double low, double high) {
    length += ns;
    Sums& sums = families[family];
    sums.ns += ns;
    if (alone <= 0) return;
    sums.down += ns * std::clamp((alone - low) / alone, 0.0, 1.0);
    sums.up += ns * std::clamp((high - alone) / alone, 0.0, 10.0);
  };
  auto add_op = [&](std::uint32_t c, std::uint32_t op, double ns) {
    const WorkTime& t = plan.classes[c].times[op];
    add(kind_name(job.classes[c].recording.ops[op].work), ns, static_cast<double>(t.ns), t.low_ns,
        t.high_ns);
  };
  // By CommunicationTime::family.
  constexpr std::string_view communication[] = {"communication within a node",
                                                "communication between nodes", "messages"};
  auto add_communication = [&](const CommunicationTime& t, double ns) {
    add(communication[t.family], ns, static_cast<double>(t.ns), t.low_ns, t.high_ns);
  };
  std::map<std::uint32_t, std::unordered_map<std::uint64_t, std::uint32_t>>
      times_of_record;  // per class
  for (const CriticalLink& link : path) {
    double ns = static_cast<double>(link.end_ns - link.start_ns);
    if (link.what == CriticalLink::What::host) {
      add("host", ns, 1, 1 - host_down, 1 + plan.model.host_uncertainty);
    } else if (link.what == CriticalLink::What::communication) {
      auto& calls = times_of_record[link.rank_class];
      const Program& program = plan.classes[link.rank_class];
      if (calls.empty())
        for (const Communication& call : program.communications)
          calls.try_emplace(std::uint64_t{call.record} << 32 | call.op, call.time);
      add_communication(
          program.communication_times[calls.at(std::uint64_t{link.record} << 32 | link.op)], ns);
    } else if (link.op != none && link.what != CriticalLink::What::wait) {
      add_op(link.rank_class, link.op, ns);
    } else {
      add("waiting", ns, 0, 0, 0);
    }
  }
  if (path.empty())
    for (std::uint32_t c = 0; c < plan.classes.size(); ++c)
      for (const LaneProgram& lane : plan.classes[c].lanes)
        for (const Item& item : lane.items) {
          if (item.kind == ItemKind::kernel || item.kind == ItemKind::copy)
            add_op(c, item.index, static_cast<double>(plan.classes[c].times[item.index].ns));
          else if (item.kind == ItemKind::communication)
            add_communication(
                plan.classes[c]
                    .communication_times[plan.classes[c].communications[item.index].time],
                static_cast<double>(
                    plan.classes[c]
                        .communication_times[plan.classes[c].communications[item.index].time]
                        .ns));
        }
  if (length <= 0) return {step_ns, step_ns, {}};
  // Errors that affect the whole step belong to no family: clock of the board, version of
  // libraries.
  const double common = plan.model.board_uncertainty * length;
  double down = common * common, up = common * common;
  Interval result;
  for (const auto& [family, sums] : families) {
    down += sums.down * sums.down;
    up += sums.up * sums.up;
    const double scale = step_ns / length;
    result.families.push_back({std::string(family), sums.ns * scale, (sums.ns - sums.down) * scale,
                               (sums.ns + sums.up) * scale});
  }
  std::stable_sort(result.families.begin(), result.families.end(),
                   [](const FamilyTime& a, const FamilyTime& b) { return a.ns > b.ns; });
  result.low_ns = step_ns * (1 - std::min(1.0, std::sqrt(down) / length));
  result.high_ns = step_ns * (1 + std::sqrt(up) / length);
  return result;
}

}  // namespace maya::simulate
