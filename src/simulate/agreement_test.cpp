// Compares the simulator with a slow and simple one, and folded jobs with unfolded ones, on random
// jobs. A job on which they differ is reduced before it is printed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "maya/collate.h"
#include "maya/simulate.h"
#include "simulate/testing/plain_machine.h"
#include "simulate/testing/random_job.h"
#include "simulate/testing/slow_simulator.h"

namespace maya::testing {
namespace {

Result<job::Job> job_of(const Script& script, bool fold, int gpus_per_node) {
  collate::Options options;
  options.fold = fold;
  options.steps = 1;
  options.gpus_per_node = gpus_per_node;
  auto job = collate::collate(recordings_of(script), options);
  if (!job) return job;
  std::vector<std::uint32_t> middles = middles_of(script);
  for (job::RankClass& c : job->classes)
    c.step_begin = {0, middles[static_cast<std::size_t>(c.representative)],
                    static_cast<std::uint32_t>(c.recording.records.size())};
  job->measured = {1, 1};
  return job;
}

struct Run {
  std::vector<SlowSpan> spans;
  simulate::Timeline timeline;
};

// The spans of every rank. The spans of a class are those of each of its members.
Run fast(const job::Job& job, const catalog::Cluster& cluster, std::string& error) {
  simulate::Options options;
  options.keep_spans = true;
  auto t = simulate::simulate(job, cluster, SizeEstimator(), SizeNetwork(cluster.gpus_per_node, 15),
                              options);
  if (!t) {
    error = t.error().message;
    return {};
  }
  Run run{{}, std::move(*t)};
  for (const simulate::Span& s : run.timeline.spans)
    for (std::int32_t rank : job.classes[s.rank_class].ranks)
      run.spans.push_back(
          {static_cast<std::uint32_t>(rank), s.record, s.issue_ns, s.start_ns, s.end_ns});
  std::sort(run.spans.begin(), run.spans.end());
  return run;
}

std::string differ(const std::vector<SlowSpan>& a, const std::vector<SlowSpan>& b,
                   const char* what) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    auto line = [](const std::vector<SlowSpan>& v, std::size_t k) {
      return k < v.size() ? fmt::format("rank {} record {} issue {} start {} end {}", v[k].rank,
                                        v[k].record, v[k].issue, v[k].start, v[k].end)
                          : std::string("nothing");
    };
    if (i >= a.size() || i >= b.size() || a[i] != b[i])
      return fmt::format("fast: {}\n{}: {}", line(a, i), what, line(b, i));
  }
  return "";
}

// Returns the difference; empty if both agree.
std::string against_slow(const Script& script, const catalog::Cluster& cluster) {
  auto job = job_of(script, false, cluster.gpus_per_node);
  if (!job) return job.error().message;
  std::string error;
  Run run = fast(*job, cluster, error);
  if (!error.empty()) return error;
  SlowResult slow =
      simulate_slowly(*job, cluster, SizeEstimator(), SizeNetwork(cluster.gpus_per_node, 15));
  if (!slow.finished) return "the slow one did not finish";
  if (std::string d = differ(run.spans, slow.spans, "slow"); !d.empty()) return d;
  for (std::size_t k = 0; k < 2; ++k) {
    std::int64_t begin = 0, end = 0;
    for (const auto& times : slow.boundaries)
      begin = std::max(begin, times[k]), end = std::max(end, times[k + 1]);
    const simulate::Step& step = run.timeline.steps[k];
    if (step.start_ns != begin || step.end_ns != end)
      return fmt::format("step {}: fast {}…{}, slow {}…{}", k, step.start_ns, step.end_ns, begin,
                         end);
  }
  // The critical path covers its step without a gap.
  const simulate::Step& last = run.timeline.steps[1];
  std::int64_t at = last.start_ns;
  for (const simulate::CriticalLink& link : run.timeline.critical_path) {
    if (link.start_ns != at)
      return fmt::format("the critical path has a gap: {}…{}", at, link.start_ns);
    at = link.end_ns;
  }
  if (at != last.end_ns)
    return fmt::format("the critical path ends at {}, the step at {}", at, last.end_ns);
  for (std::size_t c = 0; c < job->classes.size(); ++c) {
    const simulate::Breakdown &f = run.timeline.breakdown[c], &s = slow.breakdown[c];
    double pairs[][2] = {{f.compute_ns, s.compute_ns},
                         {f.communication_ns, s.communication_ns},
                         {f.exposed_communication_ns, s.exposed_communication_ns},
                         {f.copy_ns, s.copy_ns},
                         {f.idle_ns, s.idle_ns}};
    for (std::size_t i = 0; i < 5; ++i)
      if (std::abs(2 * pairs[i][0] - pairs[i][1]) > 1e-6)
        return fmt::format("breakdown {} of rank {}: fast {}, slow {}", i, c, 2 * pairs[i][0],
                           pairs[i][1]);
  }
  return "";
}

std::string folded_against_unfolded(const Script& script, const catalog::Cluster& cluster) {
  auto folded = job_of(script, true, cluster.gpus_per_node),
       unfolded = job_of(script, false, cluster.gpus_per_node);
  if (!folded) return folded.error().message;
  if (!unfolded) return unfolded.error().message;
  std::string error;
  Run a = fast(*folded, cluster, error);
  if (!error.empty()) return "folded: " + error;
  Run b = fast(*unfolded, cluster, error);
  if (!error.empty()) return "unfolded: " + error;
  if (std::string d = differ(a.spans, b.spans, "unfolded"); !d.empty())
    return "folded is fast. " + d;
  if (a.timeline.step_ns != b.timeline.step_ns) return "steps differ";
  return "";
}

// Removes smaller and smaller groups of actions as long as the test still fails.
Script shrink(Script script, const std::function<std::string(const Script&)>& fails) {
  for (std::size_t size = script.actions.size() / 2; size > 0;) {
    bool smaller = false;
    for (std::size_t at = 0; at + size <= script.actions.size();) {
      Script without = script;
      without.actions.erase(without.actions.begin() + static_cast<std::ptrdiff_t>(at),
                            without.actions.begin() + static_cast<std::ptrdiff_t>(at + size));
      if (!fails(without).empty())
        script = std::move(without), smaller = true;
      else
        at += size;
    }
    if (!smaller) size /= 2;
  }
  return script;
}

int rounds(int standard) {
  const char* more = std::getenv("MAYA_ROUNDS");
  return more != nullptr ? std::atoi(more) : standard;
}

void check(int count, int length, bool spmd,
           const std::function<std::string(const Script&, const catalog::Cluster&)>& compare) {
  for (int seed = 1; seed <= count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Script script = random_script(random, 3 + seed % length, spmd);
    catalog::Cluster cluster = random_cluster(random, script.world);
    auto fails = [&](const Script& s) { return compare(s, cluster); };
    if (fails(script).empty()) continue;
    Script small = shrink(script, fails);
    FAIL() << "seed " << seed << "\n" << fails(small) << "\n" << text(small);
  }
}

TEST(Agreement, FastAndSlow) { check(rounds(300), 40, false, against_slow); }
TEST(Agreement, FastAndSlowOnEqualRanks) { check(rounds(60), 30, true, against_slow); }
TEST(Agreement, FoldedAndUnfolded) { check(rounds(1000), 60, true, folded_against_unfolded); }

// A recording is untrusted input: the result must be a timeline or an error, never a crash.
TEST(Hostile, DamagedRecordingsDoNotCrash) {
  int errors = 0, timelines = 0;
  for (int seed = 1; seed <= rounds(400); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Script script = random_script(random, 30, seed % 2 == 0);
    std::vector<trace::Recording> recordings = recordings_of(script);
    for (int i = 0; i < 1 + seed % 5; ++i) {
      trace::Recording& r = recordings[random() % recordings.size()];
      trace::Record& record = r.records[random() % r.records.size()];
      switch (random() % 9) {
        case 0:
          record.kind = static_cast<trace::Kind>(random() % 40);
          break;
        case 1:
          record.flags = static_cast<std::uint8_t>(random());
          break;
        case 2:
          record.thread = static_cast<std::uint16_t>(random());
          break;
        case 3:
          record.stream = static_cast<std::uint16_t>(random());
          break;
        case 4:
          record.aux = static_cast<std::uint16_t>(random() % 5);
          break;
        case 5:
          record.value = random() % (random() % 2 == 0 ? 10 : 1u << 31);
          break;
        case 6:
          record.host_ns = random();
          break;
        case 7:
          r.records.resize(random() % r.records.size() + 1), r.complete = random() % 2 == 0;
          break;
        default:
          r.communicators[random() % 3].rank = static_cast<std::int32_t>(random() % 9);
          break;
      }
    }
    collate::Options options;
    options.fold = seed % 3 != 0;
    auto job = collate::collate(std::move(recordings), options);
    if (!job) {
      EXPECT_FALSE(job.error().message.empty());
      ++errors;
      continue;
    }
    auto t = simulate::simulate(*job, random_cluster(random, script.world), SizeEstimator(),
                                SizeNetwork());
    ++(t ? timelines : errors);
  }
  EXPECT_GT(errors, 0);
  EXPECT_GT(timelines, 0);
}

TEST(Agreement, RanksWithIdenticalWorkAreFolded) {
  for (unsigned seed = 1; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Script script = random_script(random, 40, true);
    auto job = job_of(script, true, script.world);
    ASSERT_TRUE(job);
    EXPECT_LE(job->classes.size(), 2u) << "seed " << seed << "\n" << text(script);
  }
}

}  // namespace
}  // namespace maya::testing
