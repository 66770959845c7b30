#include "launchers/launcher.h"

#include <algorithm>

namespace maya::launchers {

namespace {

const Launcher torchrun{"--nnodes",
                        "--node-rank",
                        "--master-addr",
                        "--rdzv-endpoint",
                        "PET_NNODES",
                        "--nproc-per-node",
                        false,
                        "PET_NPROC_PER_NODE",
                        false,
                        {"--standalone", "-m", "--module", "--no-python", "--run-path", "--use-env",
                         "--virtual-local-rank"}};
const Launcher accelerate{
    "--num-machines",
    "--machine-rank",
    "--main-process-ip",
    "",
    "",
    "--num-processes",
    true,
    "",
    true,
    {"-m", "--module", "--no-python", "--multi-gpu", "--cpu", "--mps", "--quiet", "-q",
     "--use-deepspeed", "--use-fsdp", "--use-megatron-lm", "--use-xpu", "--debug", "--same-network",
     "--no-tpu-cluster", "--enable-cpu-affinity"}};

std::string_view base_name(std::string_view word) {
  auto slash = word.rfind('/');
  return slash == std::string_view::npos ? word : word.substr(slash + 1);
}

// "--node_rank=3" → "--node-rank"
std::string option_name(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

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

std::optional<Found> program_launcher(const std::vector<std::string>& words) {
  auto found = find_launcher(words);
  if (!found) return std::nullopt;
  // "torchrun", "accelerate launch" or "-m torch.distributed.run"
  const bool alone = base_name(words[found->begin - 1]) == "torchrun";
  const std::size_t name = found->begin - (alone ? 1 : 2);
  if (name == 0) return found;
  if (base_name(words[0]).rfind("python", 0) != 0) return std::nullopt;
  for (std::size_t i = 1; i < name; ++i) {
    if (words[i].empty() || words[i][0] != '-') return std::nullopt;
    if (words[i] == "-X" || words[i] == "-W") ++i;
  }
  return found;
}

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

void put_option(std::vector<std::string>& words, const Found& found, std::string_view name,
                const std::string& value) {
  if (auto option = find_option(words, found, name)) return set_value(words, *option, value);
  std::string spelled(name);
  if (found.launcher->underscores) std::replace(spelled.begin() + 2, spelled.end(), '-', '_');
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(found.begin), {spelled, value});
}

void rendezvous_here(std::vector<std::string>& words, const Found& found) {
  if (auto option = find_option(words, found, found.launcher->address))
    set_value(words, *option, "127.0.0.1");
  if (auto option = find_option(words, found, found.launcher->endpoint)) {
    std::string endpoint = value_of(words, *option);
    auto colon = endpoint.rfind(':');
    set_value(words, *option,
              "127.0.0.1" + (colon == std::string::npos ? "" : endpoint.substr(colon)));
  }
}

}  // namespace maya::launchers
