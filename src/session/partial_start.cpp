#include "session/partial_start.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "launchers/launcher.h"
#include "launchers/nodes.h"
#include "launchers/workers.h"
#include "session/absence.h"
#include "session/settings.h"

namespace maya::session {
namespace {

bool names_a_launcher(char* const* words) {
  for (; words != nullptr && *words != nullptr; ++words)
    for (const char* name : {"torchrun", "torch.distributed.", "accelerate"})
      if (std::strstr(*words, name) != nullptr) return true;
  return false;
}

const char* value_of(char* const* environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (; environment != nullptr && *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return *environment + length + 1;
  return nullptr;
}

launchers::Environment as_map(char* const* block) {
  launchers::Environment environment;
  for (; block != nullptr && *block != nullptr; ++block)
    if (const char* equals = std::strchr(*block, '='))
      environment[std::string(*block, static_cast<std::size_t>(equals - *block))] = equals + 1;
  return environment;
}

// The node this launcher is for: what it is told, else what the script's environment says.
int node_of(const std::vector<std::string>& words, const launchers::Found& found,
            const launchers::Environment& environment) {
  if (auto option = launchers::find_option(words, found, found.launcher->rank))
    return std::atoi(launchers::value_of(words, *option).c_str());
  for (const char* name : {"PET_NODE_RANK", "NODE_RANK"})
    if (auto it = environment.find(name); it != environment.end())
      return std::atoi(it->second.c_str());
  return 0;
}

// A copy that outlives this call: the program that is started takes it over.
char** block_of(const std::vector<std::string>& texts) {
  auto** block = static_cast<char**>(std::calloc(texts.size() + 1, sizeof(char*)));
  for (std::size_t i = 0; block != nullptr && i < texts.size(); ++i)
    block[i] = strdup(texts[i].c_str());
  return block;
}

char** block_of(const launchers::Environment& environment) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  return block_of(texts);
}

void refuse(Start& start, const std::string& why) {
  std::fprintf(stderr, "maya: --ranks: %s\n", why.c_str());
  start.program = "/bin/false";
  start.words = block_of(std::vector<std::string>{"false"});
}

}  // namespace

void start_some_ranks(Start& start) {
  // Nearly every start ends here, before anything is allocated.
  if (value_of(start.environment, "MAYA_RANKS") == nullptr || !names_a_launcher(start.words))
    return;
  // Placed already, or started by a rank.
  for (const char* name : {"MAYA_PLACES", away_variable, "MAYA_RANK_PROCESS"})
    if (value_of(start.environment, name) != nullptr) return;

  std::vector<std::string> words;
  for (char* const* word = start.words; *word != nullptr; ++word) words.emplace_back(*word);
  const auto found = launchers::program_launcher(words);
  if (!found) return;
  auto environment = as_map(start.environment);
  const auto nodes = launchers::nodes_asked(words, environment);
  if (!nodes) return refuse(start, nodes.error().message);
  const int gpus = Settings::from_environment().cluster.gpus_per_node;
  auto workers = launchers::only_workers(words, environment, *nodes, gpus, ranks_that_run());
  if (!workers) return refuse(start, workers.error().message);
  if (!*workers) return;  // all its ranks start, and those that do not run wait
  if (node_of(words, *found, environment) > 0) {
    environment[away_variable] = "1";  // the first node's launcher starts them all
  } else {
    for (const auto& [name, value] : (*workers)->extra) environment[name] = value;
    environment["MAYA_PLACES"] =
        std::to_string((*workers)->world) + ":" + std::to_string((*workers)->per_node);
    start.words = block_of((*workers)->words);
  }
  start.environment = block_of(environment);
}

}  // namespace maya::session
