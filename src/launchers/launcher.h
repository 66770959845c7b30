// The launchers whose command lines we understand (torchrun, accelerate) and where their options
// stand.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maya::launchers {

using Environment = std::map<std::string, std::string>;

// The names of what a launcher is told of nodes and processes.
struct Launcher {
  std::string_view count, rank, address, endpoint;
  std::string_view count_variable;
  std::string_view processes;  // how many it starts: on each node, or in all
  bool processes_in_all;
  std::string_view processes_variable;
  bool underscores;                     // writes its options with underscores
  std::vector<std::string_view> flags;  // options without a value: what follows may be the script
};

struct Found {
  const Launcher* launcher;
  std::size_t begin;  // first word after the launcher's own name
};
std::optional<Found> find_launcher(const std::vector<std::string>& words);
// The same, if the launcher is the program itself and not a word of another one's (`echo
// torchrun`).
std::optional<Found> program_launcher(const std::vector<std::string>& words);

struct Option {
  std::size_t word;  // where its value is
  bool joined;       // --name=value
};
// Looks among the launcher's own options, which end where the script begins.
std::optional<Option> find_option(const std::vector<std::string>& words, const Found& found,
                                  std::string_view wanted);
std::string value_of(const std::vector<std::string>& words, const Option& option);
void set_value(std::vector<std::string>& words, const Option& option, const std::string& value);
// Gives the option this value, in front of the others if it is not there yet.
void put_option(std::vector<std::string>& words, const Found& found, std::string_view name,
                const std::string& value);
// Its rendezvous happens on this machine.
void rendezvous_here(std::vector<std::string>& words, const Found& found);

}  // namespace maya::launchers
