#include "launch/starts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "launch/python.h"
#include "launch/run_directory.h"

namespace maya::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* directory_variable = "MAYA_START_DIR";
constexpr const char* cache_variable = "MAYA_CACHE_DIR";

std::string value(const Environment& environment, const char* name) {
  auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

// The cache directory of the user, for what can be reused by later jobs; empty: there is none.
std::string cache_directory(const Environment& environment) {
  if (auto set = value(environment, cache_variable); !set.empty()) return set;
  std::string base = value(environment, "XDG_CACHE_HOME");
  if (base.empty() && !value(environment, "HOME").empty())
    base = value(environment, "HOME") + "/.cache";
  if (base.empty()) return base;
  std::error_code code;
  fs::create_directories(base + "/maya", code);
  return code ? "" : base + "/maya";
}

// Whether the first line of a script has options, which the kernel passes to the interpreter.
bool has_options(const std::string& script) {
  std::ifstream file(script, std::ios::binary);
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line.substr(std::min<std::size_t>(2, line.size())));
  int count = 0;
  for (bool by_env = false; words >> word; by_env = word.ends_with("/env")) count += !by_env;
  return count > 1;
}

}  // namespace

Starts Starts::of_search(const Environment& user) {
  Starts starts;
  starts.directory_ = value(user, directory_variable);
  return starts;
}

Result<Starts> Starts::create() {
  // Not in the run directory, because the path of a socket is limited to 107 bytes.
  std::string path = "/tmp/maya-start-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return Error{fmt::format("cannot make a directory in /tmp: {}", std::strerror(errno))};
  Starts starts;
  starts.directory_ = path;
  starts.owned_ = true;
  if (auto status = write_file(path + "/owner", fmt::format("{}\n", getpid())); !status)
    return status.error();
  return starts;
}

Starts::Starts(Starts&& other) noexcept
    : directory_(std::exchange(other.directory_, {})), owned_(other.owned_) {}

Starts& Starts::operator=(Starts&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(owned_, other.owned_);
  return *this;
}

Starts::~Starts() {
  std::error_code ignored;
  if (owned_ && !directory_.empty()) fs::remove_all(directory_, ignored);
}

std::string Starts::starter(const Installation& installation) {
  return installation.libraries + "/start/maya-start";
}

void Starts::set_environment(Environment& environment) const {
  if (!by_fork()) {
    environment.erase(directory_variable);
    return;
  }
  environment[directory_variable] = directory_;
  if (auto cache = cache_directory(environment); !cache.empty())
    environment[cache_variable] = cache;
}

void Starts::prepare(Process& process, const Executable& executable,
                     const Installation& installation) const {
  const auto python = python_of(executable);
  const bool is_script = !executable.interpreter.empty();
  if (!by_fork() || !python) return;
  // A script that is named python (a shim of pyenv) is not an interpreter; it finds one itself.
  if (is_script && (*python == executable.path || has_options(executable.path))) return;
  // Like the kernel: runs the interpreter of the first line with the script as its first argument.
  process.words.front() = *python;
  if (is_script) process.words.insert(process.words.begin() + 1, executable.path);
  process.path = starter(installation);
  process.environment.push_back("MAYA_START_MAIN=1");
}

}  // namespace maya::launch
