// Parses the command lines of the launchers that Maya knows (torchrun, accelerate).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maya::launchers {

using Environment = std::map<std::string, std::string>;

// The names of a launcher's options for nodes and processes.
struct Launcher {
  std::string_view count, rank, address, endpoint;
  std::string_view count_variable;
  std::string_view processes;  // number of processes: per node, or in total
  bool processes_in_all;
  std::string_view processes_variable;
  bool underscores;                     // its options are written with underscores
  std::vector<std::string_view> flags;  // options without a value; the next word may be the script
};

struct Found {
  const Launcher* launcher;
  std::size_t begin;  // first word after the launcher's own name
};
std::optional<Found> find_launcher(const std::vector<std::string>& words);
// The same, but only if the launcher is the program itself and not an argument of another program
// (`echo torchrun`).
std::optional<Found> program_launcher(const std::vector<std::string>& words);

struct Option {
  std::size_t word;  // index of the word with its value
  bool joined;       // --name=value
};
// Searches the options of the launcher, which end where the script begins.
std::optional<Option> find_option(const std::vector<std::string>& words, const Found& found,
                                  std::string_view wanted);
std::string value_of(const std::vector<std::string>& words, const Option& option);
void set_value(std::vector<std::string>& words, const Option& option, const std::string& value);
// Sets the option to this value. If it is not given yet, it is inserted before the others.
void put_option(std::vector<std::string>& words, const Found& found, std::string_view name,
                const std::string& value);
// Changes the rendezvous host to this machine.
void rendezvous_here(std::vector<std::string>& words, const Found& found);

}  // namespace maya::launchers
