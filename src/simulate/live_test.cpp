// Compares the live model with the simulator on random jobs. Each rank has its own model, gets its
// recording call by call, and knows about the others only what is on the board.
#include "simulate/live.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "maya/collate.h"
#include "maya/simulate.h"
#include "simulate/testing/plain_machine.h"
#include "simulate/testing/random_job.h"
#include "simulate/testing/slow_simulator.h"

namespace maya::testing {
namespace {

using simulate::Live;

class MapBoard final : public simulate::Board {
 public:
  void post(std::uint64_t key, std::uint32_t number, std::int64_t time) override {
    entries_[{key, number}] = time;
  }
  std::int64_t read(std::uint64_t key, std::uint32_t number) const override {
    auto it = entries_.find({key, number});
    return it == entries_.end() ? -1 : it->second;
  }
  void count_arrival() override { ++arrivals_; }
  std::uint32_t arrivals() const override { return arrivals_; }

 private:
  std::uint32_t arrivals_{};
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::int64_t> entries_;
};

// One rank: its recording and the one thread that makes its calls.
class Rank {
 public:
  Rank(const job::Job& job, const job::RankClass& own, const catalog::Cluster& cluster,
       const estimate::Estimator& estimator, const network::Network& network, MapBoard& board)
      : recording_(own.recording),
        rank_(own.representative),
        model_(simulate::Model::from(cluster, {})),
        live_(cluster, estimator, network, board, own.representative) {
    live_.keep_spans(true);
    for (const Op& op : recording_.ops) live_.define(op);
    for (const trace::Graph& graph : recording_.graphs) live_.define(graph);
    for (trace::Communicator c : recording_.communicators) {
      for (const job::Communicator& known : job.communicators)
        if (known.id == c.id) c.ranks = known.ranks;
      live_.define(c, {});
    }
  }

  // Runs until it has to wait for a partner. Returns false if nothing happened.
  bool go_on() {
    bool any = false;
    for (;;) {
      if (at_ == recording_.records.size()) {
        const Live::Progress p = live_.step();
        if (p == Live::Progress::nothing_to_do) done_ = true;
        if (p != Live::Progress::made) return any;
        any = true;
        continue;
      }
      if (call_ == simulate::none && !begin_call()) {
        any = true;
        continue;
      }
      if (!issued_) {
        if (live_.queue_full(call_)) {
          was_full_ = true;
          if (live_.step() == Live::Progress::behind_partners) return any;
          any = true;
          continue;
        }
        if (was_full_) time_ = std::max(time_, live_.now());
        time_ += live_.cost(call_);
        live_.issue(call_, time_);
        issued_ = any = true;
      }
      const std::int64_t over = live_.wait_over(call_);
      if (over < 0) {
        if (live_.step() != Live::Progress::made) return any;
        any = true;
        continue;
      }
      time_ = std::max(time_, over);
      live_.over(call_);
      call_ = simulate::none;
      ++at_;
      any = true;
    }
  }
  bool done() const { return done_; }

  void add_spans(std::vector<SlowSpan>& out) {
    for (const simulate::Span& s : live_.take_spans())
      out.push_back({static_cast<std::uint32_t>(rank_), records_.at(s.record), s.issue_ns,
                     s.start_ns, s.end_ns});
  }

 private:
  // Returns false if the record is not a call.
  bool begin_call() {
    const trace::Record& r = recording_.records[at_];
    if (r.kind == trace::Kind::wide) {
      wide_ = &r;
      ++at_;
      return false;
    }
    time_ += model_.host_ns(r.host_ns);
    live_.advance(time_ - 1);
    call_ = live_.call(r, wide_);
    wide_ = nullptr;
    if (call_ == simulate::none) {
      ++at_;
      return false;
    }
    records_[live_.number(call_)] = static_cast<std::uint32_t>(at_);
    issued_ = was_full_ = false;
    return true;
  }

  const trace::Recording& recording_;
  std::int32_t rank_;
  simulate::Model model_;
  Live live_;
  std::size_t at_{};
  const trace::Record* wide_{};
  std::uint32_t call_{simulate::none};
  bool issued_{}, was_full_{}, done_{};
  std::int64_t time_{};
  std::map<std::uint32_t, std::uint32_t> records_;  // number of a call → record
};

std::string live_against_simulator(const Script& script, const catalog::Cluster& cluster) {
  collate::Options options;
  options.fold = false;
  options.steps = 1;
  options.gpus_per_node = cluster.gpus_per_node;
  auto job = collate::collate(recordings_of(script), options);
  if (!job) return "";  // the script has no work that forms a job
  simulate::Options simulation;
  simulation.keep_spans = true;
  const SizeEstimator estimator;
  const SizeNetwork network(cluster.gpus_per_node, 15);
  auto timeline = simulate::simulate(*job, cluster, estimator, network, simulation);
  if (!timeline) return "";
  std::vector<SlowSpan> expected, found;
  for (const simulate::Span& s : timeline->spans)
    expected.push_back({static_cast<std::uint32_t>(job->classes[s.rank_class].representative),
                        s.record, s.issue_ns, s.start_ns, s.end_ns});
  MapBoard board;
  std::vector<std::unique_ptr<Rank>> ranks;
  for (const job::RankClass& c : job->classes)
    ranks.push_back(std::make_unique<Rank>(*job, c, cluster, estimator, network, board));
  for (int idle = 0;;) {
    bool any = false;
    for (auto& rank : ranks) any |= rank->go_on();
    idle = any ? 0 : idle + 1;
    if (std::all_of(ranks.begin(), ranks.end(), [](auto& rank) { return rank->done(); })) break;
    // One round to read what the others posted, and one to post the answer.
    if (idle > 3) return "the ranks wait for each other";
  }
  for (auto& rank : ranks) rank->add_spans(found);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    auto line = [](const std::vector<SlowSpan>& v, std::size_t k) {
      return k < v.size() ? fmt::format("rank {} record {} issue {} start {} end {}", v[k].rank,
                                        v[k].record, v[k].issue, v[k].start, v[k].end)
                          : std::string("nothing");
    };
    if (i >= expected.size() || i >= found.size() || expected[i] != found[i])
      return fmt::format("simulated: {}\nlive:      {}", line(expected, i), line(found, i));
  }
  return "";
}

// One thread makes all calls: with several, the order of the calls would depend on their times.
Script with_one_thread(Script script) {
  for (Action& action : script.actions) action.thread = 0, action.resumed = false;
  return script;
}

TEST(Live, OneRankAgreesWithTheSimulator) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Script script = with_one_thread(random_script(random, 60, false));
    script.world = 1;
    for (Action& action : script.actions) action.ranks &= 1u;
    const catalog::Cluster cluster = random_cluster(random, script.world);
    const std::string difference = live_against_simulator(script, cluster);
    ASSERT_EQ(difference, "") << "seed " << seed << "\n" << text(script);
  }
}

TEST(Live, TwoRanksAgreeWithTheSimulator) {
  int count = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(1000 + seed);
    const Script script = with_one_thread(random_script(random, 40, seed % 2 == 0));
    if (script.world != 2) continue;
    const catalog::Cluster cluster = random_cluster(random, script.world);
    const std::string difference = live_against_simulator(script, cluster);
    ASSERT_EQ(difference, "") << "seed " << seed << "\n" << text(script);
    ++count;
  }
  EXPECT_GT(count, 20);
}

// With more ranks a rank may advance too early, because the hosts run one after the other here and
// not in parallel as in a job. The times may differ, but there must be no deadlock.
TEST(Live, ManyRanksDoNotDeadlock) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(2000 + seed);
    const Script script = with_one_thread(random_script(random, 40, seed % 2 == 0));
    const catalog::Cluster cluster = random_cluster(random, script.world);
    ASSERT_NE(live_against_simulator(script, cluster), "the ranks wait for each other")
        << "seed " << seed << "\n"
        << text(script);
  }
}

}  // namespace
}  // namespace maya::testing
