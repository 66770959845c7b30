#include "maya/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "simulate/critical_path.h"
#include "simulate/engine.h"
#include "simulate/program.h"
#include "simulate/schedule.h"
#include "simulate/shown.h"

namespace maya::simulate {
namespace {

// The middle one of the measured steps, far from warm-up and from the end.
std::int64_t typical_step(const job::Job& job) {
  std::vector<std::int64_t> measured;
  for (std::size_t k = 0; k < job.measured.size(); ++k)
    if (job.measured[k] != 0) measured.push_back(static_cast<std::int64_t>(k));
  return measured.empty() ? -1 : measured[measured.size() / 2];
}

class Simulation {
 public:
  Simulation(const job::Job& job, const Plan& plan, const Options& options)
      : job_(job),
        plan_(plan),
        shown_(choose_shown(job, plan, options)),
        meetings_(plan),
        others_{&meetings_, {}} {
    for (std::uint32_t c = 0; c < plan.classes.size(); ++c) {
      engines_.push_back(std::make_unique<Engine>(plan, plan.classes[c], c, others_,
                                                  shown_.classes[c] != 0 ? &timeline_ : nullptr));
      others_.engines.push_back(engines_.back().get());
    }
  }

  Result<Timeline> run() {
    Schedule schedule(engines_.size());
    for (std::uint32_t c = 0; c < engines_.size(); ++c) schedule.set(c, 0);
    while (schedule.key() != never) {
      std::uint32_t c = schedule.first();
      schedule.set(c, never);
      others_.horizon = schedule.key();
      others_.running = c;
      std::int64_t key = engines_[c]->run();
      for (std::uint32_t other : others_.woken) schedule.set(other, engines_[other]->key());
      others_.woken.clear();
      schedule.set(c, key);
    }
    if (Status ok = check_end(); !ok) return ok.error();
    if (Status ok = steps(); !ok) return ok.error();
    breakdown();
    for (const auto& engine : engines_)
      timeline_.end_ns = std::max(timeline_.end_ns, engine->end());
    for (const Program& program : plan_.classes) timeline_.simulated_ops += program.works;
    path();
    if (!shown_.all()) {
      keep_measured_steps(job_, timeline_);
      timeline_.notes.push_back(shown_.note());
    }
    sort_spans();
    return std::move(timeline_);
  }

 private:
  Status check_end() {
    std::string stuck;
    int shown = 0;
    for (std::size_t c = 0; c < engines_.size(); ++c) {
      engines_[c]->accounting().finish();
      if (!engines_[c]->finished() && shown++ < 4)
        stuck += fmt::format("{}rank {}: {}", stuck.empty() ? "" : "; ",
                             job_.classes[c].representative, engines_[c]->stuck());
    }
    if (stuck.empty()) return {};
    if (!job_.truncated)
      return Error{"the job deadlocks: " + stuck + "; the recording is not of a run that ended"};
    timeline_.notes.push_back(
        "a recording ends early; simulated up to the point where other ranks wait for it: " +
        stuck);
    return {};
  }

  Status steps() {
    const std::size_t boundaries = job_.measured.size() + 1;
    std::vector<std::int64_t> times;
    for (std::size_t k = 0; k < boundaries; ++k) {
      std::int64_t time = 0;
      for (const auto& engine : engines_) {
        const auto& boundary = engine->accounting().boundaries()[k];
        if (!boundary.closed) time = -1;
        if (time >= 0) time = std::max(time, boundary.time);
      }
      if (time < 0) break;
      times.push_back(time);
    }
    double sum = 0;
    for (std::size_t k = 0; k + 1 < times.size(); ++k) {
      bool measured = job_.measured[k] != 0;
      timeline_.steps.push_back({times[k], times[k + 1], measured});
      if (measured) sum += static_cast<double>(times[k + 1] - times[k]), ++timeline_.measured_steps;
    }
    if (timeline_.steps.empty())
      return Error{"no step was completed: the recordings end before the end of the first step"};
    if (timeline_.measured_steps == 0) {  // the recordings end before the steady steps
      timeline_.notes.push_back("no steady step was completed: the completed steps are measured");
      for (Step& step : timeline_.steps) {
        step.measured = true;
        sum += static_cast<double>(step.end_ns - step.start_ns), ++timeline_.measured_steps;
      }
    }
    timeline_.step_ns = sum / timeline_.measured_steps;
    return {};
  }

  // The steps that are used for the breakdown of a class. If another class was late after its
  // warm-up, this class waits once in its first measured step, which is not part of a steady step.
  // If there are few steps, all are used.
  std::vector<std::uint8_t> steps_in_time(
      const std::vector<Accounting::Boundary>& boundaries) const {
    std::vector<std::uint8_t> all(timeline_.steps.size()), in_time(timeline_.steps.size());
    std::size_t kept = 0;
    for (std::size_t k = 0; k < timeline_.steps.size(); ++k) {
      const Step& step = timeline_.steps[k];
      all[k] = step.measured;
      const auto own = static_cast<double>(boundaries[k + 1].time - boundaries[k].time);
      const auto job = static_cast<double>(step.end_ns - step.start_ns);
      in_time[k] = step.measured && std::abs(own - job) <= 0.05 * job;
      kept += in_time[k];
    }
    return timeline_.measured_steps >= 3 && kept > 0 ? in_time : all;
  }

  void breakdown() {
    for (const auto& engine : engines_) {
      Breakdown b;
      const auto& boundaries = engine->accounting().boundaries();
      const std::vector<std::uint8_t> counts = steps_in_time(boundaries);
      for (std::size_t k = 0; k < timeline_.steps.size(); ++k) {
        if (counts[k] == 0) continue;
        const auto &from = boundaries[k].sums, &to = boundaries[k + 1].sums;
        for (unsigned a = 0; a < Accounting::sets; ++a) {
          auto ns = static_cast<double>(to.by_activity[a] - from.by_activity[a]);
          if (a & Accounting::compute) b.compute_ns += ns;
          if (a & Accounting::communication) b.communication_ns += ns;
          if ((a & Accounting::communication) && !(a & Accounting::compute)) {
            b.exposed_communication_ns += ns;
            if (a & Accounting::message_wait) b.message_wait_ns += ns;
            if (a & Accounting::collective_wait) b.collective_wait_ns += ns;
          }
          if (a == Accounting::copy) b.copy_ns += ns;
          if (a == 0) b.idle_ns += ns;
        }
        b.host_bound_ns += static_cast<double>(to.host_bound - from.host_bound);
      }
      auto count = static_cast<double>(std::count(counts.begin(), counts.end(), 1));
      for (double* part :
           {&b.compute_ns, &b.communication_ns, &b.exposed_communication_ns, &b.message_wait_ns,
            &b.collective_wait_ns, &b.copy_ns, &b.idle_ns, &b.host_bound_ns})
        *part /= count;
      b.host_bound_ns = std::min(b.host_bound_ns, b.idle_ns);
      timeline_.breakdown.push_back(b);
    }
  }

  // Classes run in turns, so their spans have to be sorted by time.
  void sort_spans() {
    std::sort(timeline_.spans.begin(), timeline_.spans.end(), [](const Span& a, const Span& b) {
      return std::tuple(a.start_ns, a.rank_class, a.stream, a.record, a.end_ns, a.op) <
             std::tuple(b.start_ns, b.rank_class, b.stream, b.record, b.end_ns, b.op);
    });
    std::sort(timeline_.host_spans.begin(), timeline_.host_spans.end(),
              [](const HostSpan& a, const HostSpan& b) {
                return std::tuple(a.start_ns, a.rank_class, a.thread, a.record, a.end_ns) <
                       std::tuple(b.start_ns, b.rank_class, b.thread, b.record, b.end_ns);
              });
  }

  void path() {
    auto step = static_cast<std::size_t>(plan_.log_step);
    if (plan_.log_step >= 0 && step < timeline_.steps.size()) {
      std::uint32_t last = 0;
      for (std::uint32_t c = 0; c < engines_.size(); ++c)
        if (engines_[c]->accounting().boundaries()[step + 1].time == timeline_.steps[step].end_ns) {
          last = c;
          break;
        }
      timeline_.critical_path = critical_path(plan_, engines_, last, timeline_.steps[step].start_ns,
                                              timeline_.steps[step].end_ns);
    }
    Interval i = interval(job_, plan_, timeline_.critical_path, timeline_.step_ns);
    timeline_.step_low_ns = i.low_ns, timeline_.step_high_ns = i.high_ns;
    timeline_.families = std::move(i.families);
    timeline_.common_error = plan_.model.board_uncertainty;
  }

  const job::Job& job_;
  const Plan& plan_;
  const Shown shown_;
  MeetingTable meetings_;
  Others others_;
  std::vector<std::unique_ptr<Engine>> engines_;
  Timeline timeline_;
};

}  // namespace

Result<Timeline> simulate(const job::Job& job, const catalog::Cluster& cluster,
                          const estimate::Estimator& estimator, const network::Network& network,
                          const Options& options) {
  if (cluster.world_size() < job.world_size)
    return Error{fmt::format(
        "the job has {} ranks, but {} has {} GPUs ({} nodes of {}): name a larger cluster, "
        "e.g. {}:{}",
        job.world_size, cluster.name, cluster.world_size(), cluster.nodes, cluster.gpus_per_node,
        cluster.name,
        (job.world_size + cluster.gpus_per_node - 1) / std::max(1, cluster.gpus_per_node))};
  Model model = Model::from(cluster, options);
  Result<Plan> plan =
      compile(job, model, estimator, network, options.critical_path ? typical_step(job) : -1);
  if (!plan) return plan.error();
  return Simulation(job, *plan, options).run();
}

}  // namespace maya::simulate
