#include "launch/job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/visible.h"
#include "launch/job_clock.h"
#include "launch/status_line.h"
#include "launch/stop_after.h"
#include "launch/supervise.h"
#include "launchers/nodes.h"
#include "launchers/workers.h"
#include "maya/collate.h"
#include "maya/trace.h"

namespace maya::launch {

namespace {

namespace fs = std::filesystem;
using launchers::NodeCommand, launchers::Workers, launchers::node_commands, launchers::only_workers;

// A free port. The default port of torchrun is a fixed number, which two concurrent runs cannot
// share.
int free_port() {
  int port = 0;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  if (listener >= 0) close(listener);
  return port;
}

// Removes the values that ranks of an earlier start exchanged: the next start must not read them.
void forget_exchange(const Job& job) {
  std::error_code ignored;
  fs::remove_all(fs::path(job.directory) / "exchange", ignored);
}

void print_headline(const Job& job, const std::vector<int>& ranks,
                    const std::optional<Workers>& workers) {
  if (job.headline.empty()) return;
  fmt::print(stderr, "maya: {}{}, recording to {}\n", job.headline,
             workers         ? fmt::format(", {} of {} ranks run", ranks.size(), workers->world)
             : job.nodes > 1 ? fmt::format(", {} nodes in parallel", job.nodes)
                             : "",
             job.shown);
}

// `output`: a file for what the command prints; empty: the output of this process.
Result<Ended> start(const Job& job, const std::vector<int>& ranks, Patience patience = {},
                    const std::string& output = {}) {
  auto workers = only_workers(job.command, job.user, job.nodes, job.gpus_per_node, ranks);
  if (!workers) return workers.error();
  auto commands = *workers ? std::vector{NodeCommand{(*workers)->words, (*workers)->extra}}
                           : node_commands(job.command, job.nodes);
  auto environment = training_environment(
      job.user, job.installation,
      {job.directory, job.catalogue, free_port(), fmt::format("{}", fmt::join(ranks, ",")),
       *workers ? fmt::format("{}:{}", (*workers)->world, (*workers)->per_node) : ""});
  if (!environment) return environment.error();
  std::vector<Process> processes;
  for (auto& node : commands) {
    auto own = *environment;
    for (const auto& [name, value] : node.extra) own[name] = value;
    if (job.starts != nullptr) job.starts->set_environment(own);
    processes.push_back({job.executable.path, std::move(node.words), as_block(own), output});
    if (job.starts != nullptr)
      job.starts->prepare(processes.back(), job.executable, job.installation);
  }
  if (output.empty()) print_headline(job, ranks, *workers);
  std::fflush(stdout);
  std::optional<StopAfter> stop;
  if (job.stop_after > 0) {
    stop.emplace(job.directory, job.stop_after, ranks);
    if (auto ready = stop->status(); !ready) return ready.error();
  }
  std::unique_ptr<JobClock> clock;
  if (job.clock_scale > 0) {
    auto started = JobClock::start(job.directory, job.clock_scale);
    if (!started) return started.error();
    clock = std::move(*started);
  }
  bool interrupted = false;
  patience.interrupted = [&] { interrupted = true; };
  patience.rank_failed = [&] { return first_failed_rank(job.directory).has_value(); };
  std::optional<StatusLine> status;
  if (job.status && output.empty() && isatty(STDERR_FILENO))
    status.emplace(STDERR_FILENO, [&, began = std::chrono::steady_clock::now()] {
      const std::chrono::duration<double> real = std::chrono::steady_clock::now() - began;
      return job.status({real.count(), clock ? clock->virtual_seconds() : -1});
    });
  auto code = supervise(processes, patience, stop ? &*stop : nullptr);
  status.reset();
  if (!code) return code.error();
  Ended ended{*code,
              stop && stop->asked(),
              interrupted,
              {},
              clock ? clock->notes() : std::vector<std::string>()};
  if (ended.code != 0) ended.failed = first_failed_rank(job.directory);
  return ended;
}

fs::path recording_of(const Job& job, int rank) {
  return fs::path(job.directory) / fmt::format("rank-{}.maya", rank);
}

bool went_well(const Result<Ended>& ended) {
  return ended && ended->code == 0 && !ended->interrupted;
}

// Further stages run in turns of so many, unless the user says how many: a pipeline may have more
// of them than this machine has memory for.
constexpr std::size_t most_beside = 15;

// Runs further ranks in addition to the recorded ones. The first rank runs again with them, because
// it creates the ids of communicators; its earlier recording is kept.
Result<Ended> start_beside(const Job& job, const std::vector<int>& others) {
  const fs::path first = recording_of(job, job.ranks.front()),
                 kept = fs::path(job.directory) / "first.maya";
  std::error_code ignored;
  Result<Ended> ended = Ended{};
  const std::size_t turn =
      job.at_once > 1 ? static_cast<std::size_t>(job.at_once) - 1 : most_beside;
  for (std::size_t done = 0; done < others.size() && went_well(ended); done += turn) {
    const auto from = others.begin() + static_cast<std::ptrdiff_t>(done);
    const auto to =
        others.begin() + static_cast<std::ptrdiff_t>(std::min(others.size(), done + turn));
    std::vector<int> now{job.ranks.front()};
    now.insert(now.end(), from, to);
    fs::rename(first, kept, ignored);
    forget_exchange(job);
    ended = start(job, now);
    if (fs::exists(kept, ignored)) fs::rename(kept, first, ignored);
  }
  return ended;
}

// Runs the ranks in turns to save memory. The first rank runs in each turn, because it creates the
// ids of communicators.
Result<Ended> start_in_turns(const Job& job) {
  const auto most = static_cast<std::size_t>(job.at_once);
  if (most < 2 || job.ranks.size() <= most) return start(job, job.ranks);
  auto alone = starts_ranks_alone(job);
  if (!alone) return alone.error();
  if (!*alone) return start(job, job.ranks);
  return start_beside(job, {job.ranks.begin() + 1, job.ranks.end()});
}

// Checks whether the first rank, which is still running, is a pipeline stage. It is called
// repeatedly, and reads the recording less and less often as it grows.
class PipelineSeen {
 public:
  explicit PipelineSeen(fs::path recording) : recording_(std::move(recording)) {}

  bool operator()() {
    std::error_code missing;
    if (Clock::now() < next_ || !fs::exists(recording_, missing)) return false;
    auto recording = trace::read(recording_.string());
    auto stages = recording ? collate::stages_both_ways(*recording) : std::vector<std::int32_t>();
    // The result must be the same twice: an all-to-all exchange that has just begun looks similar.
    const bool sure = !stages.empty() && stages == seen_;
    seen_ = std::move(stages);
    if (seen_.empty()) pause_ = std::min(pause_ * 3 / 2, longest_pause);
    next_ = Clock::now() + pause_;
    return sure;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest_pause{20'000};
  fs::path recording_;
  std::vector<std::int32_t> seen_;
  std::chrono::milliseconds pause_{400};
  Clock::time_point next_{};
};

std::vector<trace::Recording> recordings_of(const Job& job, bool stopped) {
  std::vector<trace::Recording> recordings;
  for (int rank : job.ranks)
    if (auto recording = trace::read(recording_of(job, rank).string()))
      recordings.push_back(std::move(*recording));
  if (stopped) collate::cut_to_common_steps(recordings);
  return recordings;
}

// Removes the recordings of ranks that are started again.
void forget_recordings(const Job& job, const std::vector<int>& ranks) {
  std::error_code ignored;
  for (int rank : ranks) {
    fs::remove(recording_of(job, rank), ignored);
    fs::remove(recording_of(job, rank).string() + ".tail", ignored);
  }
  forget_exchange(job);
}

// Runs further stages if stages differ by more than the order of their work. Then checks that the
// derived stages form a consistent job with the recorded ones. They do not if, for example, even
// and odd stages send in different orders: stages derived from two even ones would wait for each
// other.
Result<Ended> run_stages_that_differ(Job& job, const std::vector<std::int32_t>& stages,
                                     Result<Ended> ended) {
  auto not_yet = [&job](const std::vector<std::int32_t>& ranks) {
    std::vector<int> others;
    for (std::int32_t rank : ranks)
      if (std::find(job.ranks.begin(), job.ranks.end(), rank) == job.ranks.end())
        others.push_back(rank);
    return others;
  };
  while (went_well(ended)) {
    collate::MoreRanks more = collate::more_ranks(recordings_of(job, ended->stopped));
    std::vector<int> others = not_yet(more.ranks);
    if (others.empty()) {
      others = not_yet(stages);
      if (others.empty() || !job.fits_together) break;
      const Status fits = job.fits_together(ended->stopped);
      if (fits) break;
      more.why =
          fmt::format("the stages that did not run cannot be derived from their neighbours ({})",
                      fits.error().message);
    }
    fmt::print(stderr, "maya: {}; ranks {} run too\n", more.why, fmt::join(others, ", "));
    ended = start_beside(job, others);
    job.ranks.insert(job.ranks.end(), others.begin(), others.end());
    std::sort(job.ranks.begin(), job.ranks.end());
  }
  return ended;
}

bool ran_out_of_memory(const Job& job) {
  for (int rank : job.ranks)
    if (const auto recording = trace::read(recording_of(job, rank).string()))
      for (const trace::Record& record : recording->records)
        if (record.kind == trace::Kind::out_of_memory) return true;
  return false;
}

// Runs `job.expected`. Nothing is returned if these turn out not to be the ranks that the layout
// needs.
std::optional<Result<Ended>> run_expected(Job job) {
  if (job.expected.size() < 2) return std::nullopt;
  job.ranks = job.expected;
  auto ended = start_in_turns(job);
  if (!ended || ended->interrupted) return ended;
  const auto first = trace::read(recording_of(job, job.ranks.front()).string());
  const auto stages = first ? collate::stages_both_ways(*first) : std::vector<std::int32_t>();
  const auto needed = first ? collate::needed_ranks(*first) : std::vector<std::int32_t>();
  auto contains = [](const auto& all, const auto& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  const bool right = contains(job.ranks, needed) && contains(stages, job.ranks);
  // Out of memory before the first message: it is not known whether they are the right ones.
  if (ran_out_of_memory(job) && (right || needed.size() < 2)) return ended;
  if (!right || ended->code != 0) {
    forget_recordings(job, job.ranks);
    return std::nullopt;
  }
  return run_stages_that_differ(job, stages, ended);
}

// Runs the last rank of the job for a few steps and compares its work with that of the first one,
// which stands for all others. If they differ, the first, second, middle and last rank run
// together.
class Probe {
 public:
  Probe(Job& job, double seconds_of_first) : job_(job), seconds_(seconds_of_first) {}

  Result<Ended> check(Ended first) {
    const int world = world_size();
    if (world < 2 || !went_well(first)) return first;
    const int last = world - 1;
    const std::string output = (fs::path(job_.directory) / "probe.txt").string();
    auto ended = run(last, output);
    if (!ended) return ended;
    if (ended->interrupted) return ended;
    std::vector<trace::Recording> both;
    for (int rank : {0, last})
      if (auto recording = trace::read(recording_of(job_, rank).string()))
        both.push_back(std::move(*recording));
    forget_recordings(job_, {last});
    const auto difference = both.size() < 2
                                ? std::nullopt
                                : collate::difference(std::move(both[0]), std::move(both[1]));
    if (!difference) {
      first.notes.push_back(
          fmt::format("whether other ranks do the same work as rank 0 was not checked: rank {} "
                      "completed no steady step alone (its output: probe.txt)",
                      last));
      return first;
    }
    std::error_code ignored;
    fs::remove(output, ignored);
    if (difference->empty()) {
      first.notes.push_back(
          fmt::format("rank {} was run too and does the same work as rank 0", last));
      return first;
    }
    std::vector<int> ranks{0, 1, world / 2, last};
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    const std::string words =
        fmt::format("rank {} does other work than rank 0: {}", last, *difference);
    fmt::print(stderr, "maya: {}; ranks {} run\n", base::visible(words), fmt::join(ranks, ", "));
    forget_recordings(job_, {0});
    job_.ranks = std::move(ranks);
    auto more = start(job_, job_.ranks);
    if (more)
      more->notes.push_back(
          fmt::format("{}; ranks {} were recorded, and each other rank uses the nearest of them",
                      words, fmt::join(job_.ranks, ", ")));
    return more;
  }

 private:
  int world_size() const {
    auto recording = trace::read(recording_of(job_, 0).string());
    return recording ? recording->identity.world_size : 0;
  }

  // The caches that compilers fill are warm now, so this takes less time than the first rank did. A
  // rank that waits for others for ever is ended.
  Result<Ended> run(int rank, const std::string& output) {
    constexpr int steps = 1;
    constexpr double patience_factor = 2, least_seconds = 60;
    Job alone = job_;
    alone.stop_after = job_.stop_after > 0 ? std::min(job_.stop_after, steps) : steps;
    forget_exchange(job_);
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                           std::max(least_seconds, patience_factor * seconds_)));
    Patience patience;
    patience.enough = [until] { return Clock::now() > until; };
    return start(alone, {rank}, patience, output);
  }

  using Clock = std::chrono::steady_clock;
  Job& job_;
  double seconds_;
};

}  // namespace

Result<bool> starts_ranks_alone(const Job& job) {
  auto workers = only_workers(job.command, job.user, job.nodes, job.gpus_per_node, job.ranks);
  if (!workers) return workers.error();
  return workers->has_value();
}

Result<Ended> run_job(Job job) {
  if (!job.unique) return start_in_turns(job);
  if (auto ended = run_expected(job)) return *ended;
  // The recording of the first rank determines which ranks are needed. As soon as it is known to be
  // a pipeline stage, the first rank is ended and all needed ranks are started.
  const fs::path first = recording_of(job, job.ranks.front());
  bool seen = false;
  Patience patience;
  patience.enough = [pipeline = PipelineSeen(first), &seen]() mutable {
    seen = pipeline();
    return seen;
  };
  const auto began = std::chrono::steady_clock::now();
  auto ended = start(job, job.ranks, patience);
  if (!ended || ended->interrupted) return ended;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::vector<std::int32_t> stages;
  if (auto recording = trace::read(first.string())) {
    job.ranks = collate::needed_ranks(*recording);
    stages = collate::stages_both_ways(*recording);
  }
  if (job.ranks.size() == 1)
    return job.probe ? Probe(job, took.count()).check(std::move(*ended)) : ended;
  const bool alone_failed = ended->code != 0 && !seen;
  fmt::print(stderr, "maya: rank 0 is a stage of a pipeline{}: ranks {} run\n",
             alone_failed ? " and cannot run alone, which caused its error" : "",
             fmt::join(job.ranks, ", "));
  forget_recordings(job, {job.ranks.front()});
  ended = start_in_turns(job);
  // A stage may need data from a neighbour that does not run, for example to infer shapes.
  if (ended && ended->code != 0 && !ended->interrupted && stages.size() > job.ranks.size() &&
      !ran_out_of_memory(job)) {
    fmt::print(stderr, "maya: these stages cannot run without their neighbours: all {} run\n",
               stages.size());
    forget_recordings(job, job.ranks);
    job.ranks.assign(stages.begin(), stages.end());
    return start_in_turns(job);
  }
  return run_stages_that_differ(job, stages, ended);
}

}  // namespace maya::launch
