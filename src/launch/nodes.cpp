#include "launch/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

namespace maya::launch {

namespace {

// What we must know of a launcher's command line to play several nodes.
struct Launcher {
  std::string_view count, rank, address, endpoint;
  std::string_view count_variable;
  std::vector<std::string_view> flags;  // options without a value: what follows may be the script
};

const Launcher torchrun{"--nnodes",
                        "--node-rank",
                        "--master-addr",
                        "--rdzv-endpoint",
                        "PET_NNODES",
                        {"--standalone", "-m", "--module", "--no-python", "--run-path", "--use-env",
                         "--virtual-local-rank"}};
const Launcher accelerate{
    "--num-machines",
    "--machine-rank",
    "--main-process-ip",
    "",
    "",
    {"-m", "--module", "--no-python", "--multi-gpu", "--cpu", "--mps", "--quiet", "-q",
     "--use-deepspeed", "--use-fsdp", "--use-megatron-lm", "--use-xpu", "--debug", "--same-network",
     "--no-tpu-cluster", "--enable-cpu-affinity"}};

struct Found {
  const Launcher* launcher;
  std::size_t begin;  // first word after the launcher's own name
};

std::string_view base_name(std::string_view word) {
  auto slash = word.rfind('/');
  return slash == std::string_view::npos ? word : word.substr(slash + 1);
}

std::optional<Found> find_launcher(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (base_name(words[i]) == "torchrun") return Found{&torchrun, i + 1};
    if (i + 1 < words.size()) {
      const std::string& next = words[i + 1];
      if (words[i] == "-m" &&
          (next == "torch.distributed.run" || next == "torch.distributed.launch")) {
        return Found{&torchrun, i + 2};
      }
      if (base_name(words[i]) == "accelerate" && next == "launch") return Found{&accelerate, i + 2};
    }
  }
  return std::nullopt;
}

// "--node_rank=3" → "--node-rank"
std::string option_name(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

struct Option {
  std::size_t word;  // where its value is
  bool joined;       // --name=value
};

// The launcher's own options end where the script begins.
std::optional<Option> find_option(const std::vector<std::string>& words, const Found& found,
                                  std::string_view wanted) {
  if (wanted.empty()) return std::nullopt;
  for (std::size_t i = found.begin; i < words.size(); ++i) {
    if (words[i].empty() || words[i][0] != '-') return std::nullopt;
    std::string name = option_name(words[i]);
    bool joined = words[i].find('=') != std::string::npos;
    const auto& flags = found.launcher->flags;
    bool flag = std::find(flags.begin(), flags.end(), name) != flags.end();
    if (name == wanted) {
      if (joined) return Option{i, true};
      if (i + 1 < words.size()) return Option{i + 1, false};
      return std::nullopt;
    }
    if (!joined && !flag) ++i;
  }
  return std::nullopt;
}

std::string value_of(const std::vector<std::string>& words, const Option& option) {
  const std::string& word = words[option.word];
  return option.joined ? word.substr(word.find('=') + 1) : word;
}

void set_value(std::vector<std::string>& words, const Option& option, const std::string& value) {
  std::string& word = words[option.word];
  word = option.joined ? word.substr(0, word.find('=') + 1) + value : value;
}

}  // namespace

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
    return Error{fmt::format("{} in the command is '{}', not a number of nodes",
                             found->launcher->count, text)};
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
      const Launcher& launcher = *found->launcher;
      if (auto option = find_option(copy.words, *found, launcher.address)) {
        set_value(copy.words, *option, "127.0.0.1");
      }
      if (auto option = find_option(copy.words, *found, launcher.endpoint)) {
        std::string endpoint = value_of(copy.words, *option);
        auto colon = endpoint.rfind(':');
        set_value(copy.words, *option,
                  "127.0.0.1" + (colon == std::string::npos ? "" : endpoint.substr(colon)));
      }
      if (auto option = find_option(copy.words, *found, launcher.rank)) {
        set_value(copy.words, *option, rank);
      } else {
        std::string name(launcher.rank);
        if (found->launcher == &accelerate) std::replace(name.begin() + 2, name.end(), '-', '_');
        copy.words.insert(copy.words.begin() + static_cast<std::ptrdiff_t>(found->begin),
                          {name, rank});
      }
    }
    result.push_back(std::move(copy));
  }
  return result;
}

Result<std::string> listed_ranks(const std::string& text) {
  if (text == "all") return std::string();
  const Error wrong{"expected `all` or ranks as 0-3,8,9"};
  constexpr int most = 1 << 22;
  std::set<int> ranks;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc() || first < 0 || first > most) return wrong;
    int last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc() || last < first || last > most) return wrong;
    }
    for (int rank = first; rank <= last; ++rank) ranks.insert(rank);
    if (parsed.ptr == end) break;
    if (*parsed.ptr != ',') return wrong;
    at = parsed.ptr + 1;
  }
  return fmt::format("{}", fmt::join(ranks, ","));
}

}  // namespace maya::launch
