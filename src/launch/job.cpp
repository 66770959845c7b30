#include "launch/job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

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

// A port nobody listens on now. torchrun's own default is one fixed number, and two runs would meet
// there.
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

// What the ranks of an earlier start told each other must not answer those of the next.
void forget_exchange(const Job& job) {
  std::error_code ignored;
  fs::remove_all(fs::path(job.directory) / "exchange", ignored);
}

void print_headline(const Job& job, const std::vector<int>& ranks,
                    const std::optional<Workers>& workers) {
  if (job.headline.empty()) return;
  fmt::print(stderr, "maya: {}{}, recording to {}\n", job.headline,
             workers         ? fmt::format(", {} of {} ranks run", ranks.size(), workers->world)
             : job.nodes > 1 ? fmt::format(", {} nodes side by side", job.nodes)
                             : "",
             job.shown);
}

Result<Ended> start(const Job& job, const std::vector<int>& ranks) {
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
    processes.push_back({job.program, std::move(node.words), as_block(own)});
  }
  print_headline(job, ranks, *workers);
  std::fflush(stdout);
  std::optional<StopAfter> stop;
  if (job.stop_after > 0) {
    stop.emplace(job.directory, job.stop_after, ranks);
    if (auto ready = stop->status(); !ready) return ready.error();
  }
  Patience patience;
  patience.rank_failed = [&] { return first_failed_rank(job.directory).has_value(); };
  auto code = supervise(processes, patience, stop ? &*stop : nullptr);
  if (!code) return code.error();
  Ended ended{*code, stop && stop->asked(), {}};
  if (ended.code != 0) ended.failed = first_failed_rank(job.directory);
  return ended;
}

// Ranks that need not run at the same time may take turns where memory is short. The first runs in
// each: communicators start from it.
Result<Ended> start_in_turns(const Job& job) {
  const auto most = static_cast<std::size_t>(job.at_once);
  if (most < 2 || job.ranks.size() <= most) return start(job, job.ranks);
  auto alone = starts_ranks_alone(job);
  if (!alone) return alone.error();
  if (!*alone) return start(job, job.ranks);
  const fs::path folder(job.directory);
  const fs::path kept = folder / "first.maya",
                 first = folder / fmt::format("rank-{}.maya", job.ranks.front());
  Result<Ended> ended = Ended{};
  std::error_code ignored;
  for (std::size_t done = 1; done < job.ranks.size() && ended && ended->code == 0;
       done += most - 1) {
    std::vector<int> now{job.ranks.front()};
    for (std::size_t i = done; i < std::min(job.ranks.size(), done + most - 1); ++i)
      now.push_back(job.ranks[i]);
    forget_exchange(job);
    ended = start(job, now);
    if (done == 1) fs::rename(first, kept, ignored);
  }
  fs::rename(kept, first, ignored);
  return ended;
}

}  // namespace

Result<bool> starts_ranks_alone(const Job& job) {
  auto workers = only_workers(job.command, job.user, job.nodes, job.gpus_per_node, job.ranks);
  if (!workers) return workers.error();
  return workers->has_value();
}

Result<Ended> run_job(Job job) {
  auto ended = start_in_turns(job);
  if (ended && ended->code == 0 && job.unique) {
    // What the first rank did tells who else is needed; then all of them run together.
    const std::string first = fmt::format("{}/rank-{}.maya", job.directory, job.ranks.front());
    auto recording = trace::read(first);
    if (!recording) return ended;
    job.ranks = collate::needed_ranks(*recording);
    if (job.ranks.size() > 1) {
      fmt::print(stderr, "maya: rank 0 is a stage of a pipeline: ranks {} run\n",
                 fmt::join(job.ranks, ", "));
      std::error_code ignored;
      fs::remove(first, ignored);
      forget_exchange(job);
      ended = start_in_turns(job);
    }
  }
  return ended;
}

}  // namespace maya::launch
