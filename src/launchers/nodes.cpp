#include "launchers/nodes.h"

#include <charconv>
#include <string_view>

#include "launchers/launcher.h"

namespace maya::launchers {

Result<int> nodes_asked(const std::vector<std::string>& command, const Environment& environment) {
  auto found = find_launcher(command);
  if (!found) return 1;
  std::string text;
  if (auto option = find_option(command, *found, found->launcher->count)) {
    text = value_of(command, *option);
  } else if (auto it = environment.find(std::string(found->launcher->count_variable));
             it != environment.end()) {
    text = it->second;
  }
  if (text.empty()) return 1;
  std::string_view last(text);
  last = last.substr(last.rfind(':') + 1);
  int nodes = 0;
  auto [end, code] = std::from_chars(last.data(), last.data() + last.size(), nodes);
  if (code != std::errc{} || end != last.data() + last.size() || nodes < 1) {
    return Error{std::string(found->launcher->count) + " in the command is '" + text +
                 "', not a number of nodes"};
  }
  return nodes;
}

std::vector<NodeCommand> node_commands(const std::vector<std::string>& command, int nodes) {
  if (nodes == 1) return {NodeCommand{command, {}}};
  std::vector<NodeCommand> result;
  auto found = find_launcher(command);
  for (int node = 0; node < nodes; ++node) {
    NodeCommand copy{command, {}};
    std::string rank = std::to_string(node);
    for (const char* name : {"NODE_RANK", "PET_NODE_RANK", "SLURM_NODEID"}) copy.extra[name] = rank;
    if (found) {
      rendezvous_here(copy.words, *found);
      put_option(copy.words, *found, found->launcher->rank, rank);
    }
    result.push_back(std::move(copy));
  }
  return result;
}

}  // namespace maya::launchers
