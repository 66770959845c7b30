#include "launchers/workers.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "launchers/launcher.h"

namespace maya::launchers {

Result<std::vector<int>> listed_ranks(const std::string& text) {
  if (text == "all") return std::vector<int>();
  const Error wrong{"expected `all`, `unique` or ranks as 0-3,8,16-56/8"};
  constexpr int most = 1 << 22;
  std::set<int> ranks;
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](int& value) {
    auto parsed = std::from_chars(at, end, value);
    at = parsed.ptr;
    return parsed.ec == std::errc() && value >= 0 && value <= most;
  };
  while (true) {
    int first = 0, every = 1;
    if (!number(first)) return wrong;
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return wrong;
      if (at != end && *at == '/') {
        ++at;
        if (!number(every) || every < 1) return wrong;
      }
    }
    for (int rank = first; rank <= last; rank += every) ranks.insert(rank);
    if (at == end) break;
    if (*at++ != ',') return wrong;
  }
  return std::vector<int>(ranks.begin(), ranks.end());
}

namespace {

// The number of processes that the launcher starts on a node; 0: not given.
int processes_per_node(const std::vector<std::string>& command, const Environment& environment,
                       const Found& found, int nodes, int gpus) {
  std::string text;
  const Launcher& launcher = *found.launcher;
  if (auto option = find_option(command, found, launcher.processes)) {
    text = value_of(command, *option);
  } else if (auto it = environment.find(std::string(launcher.processes_variable));
             it != environment.end()) {
    text = it->second;
  }
  if (text.empty()) return launcher.processes_in_all ? 0 : 1;
  if (text == "gpu" || text == "auto") return gpus;
  int count = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (code != std::errc{} || end != text.data() + text.size() || count < 1) return 0;
  return launcher.processes_in_all ? (count % nodes == 0 ? count / nodes : 0) : count;
}

// `torch.distributed.launch` passes the local rank to the script as an option, which cannot be
// corrected.
bool tells_by_option(const std::vector<std::string>& command, const Found& found) {
  if (command[found.begin - 1] != "torch.distributed.launch") return false;
  return std::none_of(
      command.begin() + static_cast<std::ptrdiff_t>(found.begin), command.end(),
      [](const std::string& word) { return word == "--use-env" || word == "--use_env"; });
}

}  // namespace

Result<std::optional<Workers>> only_workers(const std::vector<std::string>& command,
                                            const Environment& environment, int nodes, int gpus,
                                            const std::vector<int>& ranks) {
  const auto none = std::optional<Workers>();
  auto found = find_launcher(command);
  if (ranks.empty() || !found || tells_by_option(command, *found)) return none;
  const int per_node = processes_per_node(command, environment, *found, nodes, gpus);
  if (per_node == 0) return none;
  const int world = nodes * per_node;
  if (ranks.back() >= world)
    return Error{"there is no rank " + std::to_string(ranks.back()) + ": the command starts " +
                 std::to_string(world) + " (" + std::to_string(nodes) + " × " +
                 std::to_string(per_node) + ")"};
  Workers workers{command, world, per_node, {}};
  const Launcher& launcher = *found->launcher;
  rendezvous_here(workers.words, *found);
  if (auto option = find_option(workers.words, *found, launcher.rank))
    set_value(workers.words, *option, "0");
  put_option(workers.words, *found, launcher.processes, std::to_string(ranks.size()));
  if (nodes > 1) put_option(workers.words, *found, launcher.count, "1");
  for (const char* name : {"NODE_RANK", "PET_NODE_RANK", "SLURM_NODEID"})
    if (nodes > 1) workers.extra[name] = "0";
  return std::optional<Workers>(std::move(workers));
}

}  // namespace maya::launchers
