#include "cli/python_verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace maya::cli {
namespace {

namespace fs = std::filesystem;

struct Verb {
  const char* name;
  const char* description;
};
constexpr Verb verbs[] = {
    {"search", "Search configurations of a training command for the best one"},
    {"calibrate", "Learn from profiles you have: PyTorch traces, Nsight exports, CSV files"},
    {"profile", "Measure the op families on a GPU you have"},
    {"validate", "Compare predictions with published measurements"},
    {"serve", "Local web view over a folder of runs and searches"},
    {"serve-bench", "A serving engine under load, in virtual time"},
    {"completion", "Completion of verbs and options for bash, zsh and fish"},
};

fs::path self() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

// The folder with the package `maya`: near an installed program, else in the source tree.
fs::path package_folder() {
  const fs::path prefix = self().parent_path().parent_path();
  std::error_code ignored;
  if (fs::exists(prefix / "__init__.py", ignored)) return prefix.parent_path();
  return MAYA_PYTHON_SOURCE;
}

// `maya serve-bench` is the module maya.serve_bench.
std::string module_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool installed(const Verb& verb) {
  std::error_code ignored;
  const fs::path module = package_folder() / "maya" / module_name(verb.name);
  return fs::exists(module.string() + ".py", ignored) ||
         fs::exists(module / "__main__.py", ignored);
}

// The interpreter in the same folder as the program (.venv/bin/maya), else the one on PATH.
std::string interpreter() {
  if (const char* chosen = std::getenv("MAYA_PYTHON"); chosen && *chosen) return chosen;
  const fs::path called = program_invocation_name;
  const fs::path beside = called.parent_path() / "python3";
  std::error_code ignored;
  return called.has_parent_path() && fs::exists(beside, ignored) ? beside.string() : "python3";
}

}  // namespace

void add_python_verbs(CLI::App& app) {
  for (const Verb& verb : verbs)
    if (installed(verb)) app.add_subcommand(verb.name, verb.description);
}

int run_python(const std::string& name, const std::vector<std::string>& arguments) {
  const char* already = std::getenv("PYTHONPATH");
  const std::string path =
      package_folder().string() + (already && *already ? std::string(":") + already : "");
  setenv("PYTHONPATH", path.c_str(), 1);
  setenv("MAYA_PROGRAM", self().c_str(), 1);
  const std::string python = interpreter();
  std::vector<std::string> words{python, "-m", "maya." + module_name(name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(python.c_str(), pointers.data());
  return fail(fmt::format("cannot start {} ({}); name an interpreter with MAYA_PYTHON", python,
                          std::strerror(errno)));
}

std::optional<int> run_python_verb(int argc, char** argv) {
  for (const Verb& verb : verbs)
    if (argc > 1 && std::strcmp(argv[1], verb.name) == 0 && installed(verb))
      return run_python(verb.name, std::vector<std::string>(argv + 2, argv + argc));
  return std::nullopt;
}

}  // namespace maya::cli
