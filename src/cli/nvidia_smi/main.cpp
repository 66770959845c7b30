// The `nvidia-smi` that is first on PATH under `maya run`. It describes the emulated machine, from
// device.txt of the run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "machine.h"
#include "pages.h"
#include "query.h"

namespace {

using namespace maya::nvidia_smi;

int fail(const std::string& message, int code) {
  fmt::print(stdout, "{}\n", message);
  return code;
}

// "--name=value" or "--name value" / "-i value"
bool take(const std::vector<std::string>& words, std::size_t& i, std::string_view name,
          std::string& value) {
  const std::string& word = words[i];
  if (word.rfind(std::string(name) + "=", 0) == 0) {
    value = word.substr(name.size() + 1);
    return true;
  }
  if (word != name || i + 1 >= words.size()) return false;
  value = words[++i];
  return true;
}

// --id accepts a number, a UUID or a bus id, or several with commas.
bool narrow(Machine& machine, const std::string& ids) {
  std::vector<int> kept;
  std::size_t begin = 0;
  while (begin <= ids.size()) {
    auto end = std::min(ids.find(',', begin), ids.size());
    std::string id = ids.substr(begin, end - begin);
    auto it = std::find_if(machine.gpus.begin(), machine.gpus.end(), [&](int gpu) {
      return id == std::to_string(gpu) || id == uuid(machine.cluster, gpu) || id == bus_id(gpu);
    });
    if (it == machine.gpus.end()) return false;
    kept.push_back(*it);
    begin = end + 1;
  }
  machine.gpus = kept;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (!run)
    return fail("nvidia-smi of maya: there is an emulated machine only inside `maya run`.", 9);
  auto machine = read_machine(run);
  if (!machine) return fail("nvidia-smi of maya: " + machine.error().message, 9);

  if (!words.empty() && words[0] == "topo") {
    fmt::print("{}", topology(*machine));
    return 0;
  }
  std::string fields, format_text, id, ignored;
  bool list_only = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-L" || words[i] == "--list-gpus") {
      list_only = true;
    } else if (words[i] == "-h" || words[i] == "--help") {
      fmt::print(
          "nvidia-smi of maya: the emulated machine\n"
          "  nvidia-smi [-i ID] [-L] [--query-gpu=FIELDS --format=csv[,noheader][,nounits]]\n"
          "  nvidia-smi topo -m\n");
      return 0;
    } else if (words[i] == "--version") {
      fmt::print(
          "NVIDIA-SMI version  : {0} (maya)\nDRIVER version      : {0}\nCUDA Version        : "
          "{1}\n",
          driver_version(), cuda_version());
      return 0;
    } else if (take(words, i, "--query-compute-apps", ignored)) {
      return 0;  // there are no processes on an emulated GPU
    } else if (!take(words, i, "--query-gpu", fields) && !take(words, i, "--format", format_text) &&
               !take(words, i, "--id", id) && !take(words, i, "-i", id)) {
      return fail(
          fmt::format("Invalid combination of input arguments: {} is not emulated.", words[i]), 2);
    }
  }
  if (!id.empty() && !narrow(*machine, id)) return fail("No devices were found", 6);
  if (list_only) {
    fmt::print("{}", list(*machine));
  } else if (!fields.empty()) {
    auto format = parse_format(format_text);
    if (!format) return fail(format.error().message, 2);
    auto text = query(*machine, fields, *format);
    if (!text) return fail(text.error().message, 2);
    fmt::print("{}", *text);
  } else {
    fmt::print("{}", table(*machine));
  }
  return 0;
}
