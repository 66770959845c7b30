// maya doctor: reports what is installed, what is missing, and what to do about it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "catalog/flat.h"
#include "cli/command.h"
#include "launch/environment.h"
#include "launch/executable.h"
#include "launch/installation.h"
#include "launch/jax.h"
#include "launch/packages.h"
#include "launch/python.h"
#include "launch/run_directory.h"
#include "launch/supervise.h"
#include "maya/catalog.h"

namespace maya::cli {

namespace {

namespace fs = std::filesystem;

enum class State { good, warning, wrong };

struct Finding {
  std::string subject;
  State state;
  std::string text;
};

using Findings = std::vector<Finding>;

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

// A temporary run directory for the checks.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/maya-doctor-XXXXXX";
    if (char* made = mkdtemp(name)) path_ = made;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The Python that is checked, and how it was chosen.
struct Choice {
  std::string path, why;
};

// The Python that the user named, directly or by a command that starts it (torchrun).
Choice named_python(const std::string& word) {
  auto executable = launch::find_executable(word, search_path());
  if (!executable) return {word, "as named"};
  auto python = launch::python_of(*executable);
  return {python ? *python : word,
          python && *python != executable->path ? "of " + word : "as named"};
}

// By default: the active virtual environment, else the one that this program is in, else PATH.
Choice default_python() {
  if (const char* active = std::getenv("VIRTUAL_ENV")) {
    std::string python = std::string(active) + "/bin/python";
    if (fs::exists(python)) return {python, "the active virtual environment"};
  }
  // Uses the name that the program was called with: `.venv/bin/maya` is a link out of the
  // environment.
  if (auto self = launch::find_executable(program_invocation_name, search_path())) {
    std::string python = fs::path(self->path).parent_path() / "python";
    if (fs::exists(python)) return {python, "beside maya"};
  }
  return {"python3", "first on PATH"};
}

std::optional<launch::Python> check_python(const Choice& wanted, Findings& findings) {
  auto executable = launch::find_executable(wanted.path, search_path());
  if (!executable) {
    findings.push_back({"python", State::wrong, executable.error().message});
    return std::nullopt;
  }
  auto python = launch::inspect_python(executable->path);
  if (!python) {
    findings.push_back({"python", State::wrong, python.error().message});
    return std::nullopt;
  }
  findings.push_back({"python", State::good,
                      fmt::format("{} at {} ({})", python->version, python->path, wanted.why)});
  return *python;
}

void check_torch(const launch::Python& python, bool needed, Findings& findings) {
  if (!python.torch) {
    findings.push_back(
        {"torch", needed ? State::wrong : State::warning,
         "not installed; `pip install --no-deps torch` and its pure-Python needs are enough"});
    return;
  }
  const auto& torch = *python.torch;
  if (!torch.rocm.empty()) {
    findings.push_back({"torch", State::wrong,
                        fmt::format("{} is a ROCm build; Maya emulates CUDA", torch.version)});
  } else if (torch.cuda.empty()) {
    findings.push_back(
        {"torch", State::wrong,
         fmt::format("{} is a build without CUDA; install a CUDA build of the same version",
                     torch.version)});
  } else if (torch.cuda.rfind("12.", 0) != 0 && torch.cuda.rfind("13.", 0) != 0) {
    findings.push_back({"torch", State::wrong,
                        fmt::format("{} is built for CUDA {}; Maya emulates CUDA 12 and 13",
                                    torch.version, torch.cuda)});
  } else {
    findings.push_back(
        {"torch", State::good, fmt::format("{}, built for CUDA {}", torch.version, torch.cuda)});
  }
  if (!python.missing.empty()) {
    bool only_numpy = python.missing == std::vector<std::string>{"numpy"};
    findings.push_back(
        {"packages", only_numpy ? State::warning : State::wrong,
         fmt::format("torch needs {}: pip install {}", fmt::join(python.missing, ", "),
                     fmt::join(python.missing, " "))});
  }
  if (python.nvidia_packages.empty()) {
    findings.push_back(
        {"nvidia", State::good,
         torch.cuda.empty()
             ? "no NVIDIA package is installed, and none is needed"
             : "no NVIDIA package is installed, and `maya run` needs none; outside `maya run`, "
               "`import torch` ends with \"lib….so: cannot open shared object file\": start Python "
               "with `maya run -- python …`, or install torch with its dependencies"});
  } else {
    findings.push_back(
        {"nvidia", State::good,
         fmt::format("{} NVIDIA packages are installed; under maya run they are not used",
                     python.nvidia_packages.size())});
  }
}

void check_triton(const launch::Python& python, Findings& findings) {
  if (python.triton.empty()) {
    findings.push_back({"triton", State::warning, "not installed: torch.compile will not work"});
    return;
  }
  const char* set = std::getenv("CC");
  std::string compiler;
  for (const std::string& name :
       {std::string(set ? set : ""), std::string("cc"), std::string("gcc"), std::string("clang")}) {
    if (name.empty()) continue;
    if (auto found = launch::find_executable(name, search_path())) {
      compiler = found->path;
      break;
    }
  }
  if (compiler.empty()) {
    findings.push_back(
        {"triton", State::warning,
         fmt::format(
             "{}, but no C compiler is on PATH: torch.compile needs one (apt-get install gcc)",
             python.triton)});
  } else if (python.include.empty()) {
    findings.push_back(
        {"triton", State::warning,
         fmt::format(
             "{}, but Python.h is missing: torch.compile needs it (apt-get install python3-dev)",
             python.triton)});
  } else {
    findings.push_back(
        {"triton", State::good, fmt::format("{}, compiles with {}", python.triton, compiler)});
  }
}

void check_jax(const launch::Jax& jax, Findings& findings) {
  if (jax.cuda_major == 0) {
    findings.push_back(
        {"jax", State::warning,
         fmt::format("{} without a CUDA plug-in: it runs on the CPU and Maya records nothing; "
                     "pip install jax-cuda13-plugin jax-cuda13-pjrt",
                     jax.version)});
  } else if (jax.ptxas.empty()) {
    findings.push_back(
        {"jax", State::warning,
         fmt::format("{}, plug-in {} for CUDA {}, but XLA will find no ptxas: pip install {}",
                     jax.version, jax.plugin, jax.cuda_major,
                     jax.cuda_major == 12 ? "nvidia-cuda-nvcc-cu12" : "nvidia-cuda-nvcc")});
  } else {
    findings.push_back({"jax", State::good,
                        fmt::format("{}, plug-in {} for CUDA {}, assembles with {}", jax.version,
                                    jax.plugin, jax.cuda_major, jax.ptxas)});
  }
}

void check_packages(const launch::Python& python, Findings& findings) {
  if (!python.packages.empty()) {
    auto packages = python.packages;
    std::sort(packages.begin(), packages.end());
    findings.push_back({"packages", State::good, fmt::format("{}", fmt::join(packages, ", "))});
  }
  using Kind = launch::UnreachedLibrary::Kind;
  std::vector<std::string> copies;
  for (const auto& library : launch::unreached_libraries(python.site)) {
    std::string shown = fs::path(library.path).lexically_relative(python.site);
    // A static runtime works on the emulated driver (shim/cuda/export_table.cpp).
    if (library.kind == Kind::private_runtime) copies.push_back(shown);
  }
  if (!copies.empty()) {
    findings.push_back({"runtimes", State::warning,
                        fmt::format("private copies of libcudart: {}; the emulated library is used "
                                    "instead if they are of CUDA 12 or 13",
                                    fmt::join(copies, ", "))});
  }
}

void check_user_preload(Findings& findings) {
  for (const auto& remark : launch::preload_remarks(launch::current_environment()))
    findings.push_back({"preload", remark.conflict ? State::warning : State::good, remark.text});
}

// Starts a child with the preloaded libraries, which prints its memory map, and checks that all
// emulated libraries are in it before others.
void check_preload(const launch::Environment& environment, const launch::Installation& installation,
                   Findings& findings) {
  auto cat = launch::find_executable("cat", "/bin:/usr/bin");
  if (!cat) return;
  if (!fs::exists("/proc/self/maps")) {
    findings.push_back(
        {"proc", State::wrong,
         "/proc is not mounted, which PyTorch and Maya need: `mount -t proc proc /proc`"});
    return;
  }
  auto maps =
      launch::capture({cat->path, {"cat", "/proc/self/maps"}, launch::as_block(environment)});
  if (!maps) {
    findings.push_back(
        {"preload", State::wrong,
         "a program does not start with the emulated libraries: " + maps.error().message});
    return;
  }
  std::vector<std::string> absent;
  for (const auto& path : installation.preload) {
    if (maps->find(fs::canonical(path).string()) == std::string::npos)
      absent.push_back(fs::path(path).filename());
  }
  if (!absent.empty()) {
    findings.push_back(
        {"preload", State::wrong,
         fmt::format(
             "the loader did not load {}; start a program by hand with LD_DEBUG=libs to see why",
             fmt::join(absent, ", "))});
    return;
  }
  findings.push_back(
      {"preload", State::good, "the loader loads every emulated library before any other"});
}

// Asks torch itself which devices it sees.
void check_device(const launch::Python& python, const launch::Environment& environment,
                  const launch::Installation& installation, Findings& findings) {
  constexpr const char* question = R"(
import torch
print("count", torch.cuda.device_count())
print("name", torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none")
for line in open("/proc/self/maps"):
    path = line.split(None, 5)[-1].strip()
    if path.startswith("/"):
        print("map", path)
)";
  auto output =
      launch::capture({python.path, {python.path, "-c", question}, launch::as_block(environment)});
  if (!output) {
    findings.push_back(
        {"device", State::wrong,
         fmt::format(
             "torch cannot be imported under emulation; see why with: maya run -- {} -c 'import "
             "torch; torch.cuda.init()'",
             python.path)});
    return;
  }
  std::string count, name;
  std::set<std::string> ours, strangers;
  for (const auto& path : installation.preload) ours.insert(fs::path(path).filename());
  std::istringstream lines(*output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("count ", 0) == 0) count = line.substr(6);
    if (line.rfind("name ", 0) == 0) name = line.substr(5);
    if (line.rfind("map ", 0) != 0) continue;
    fs::path path(line.substr(4));
    std::error_code ignored;
    if (ours.contains(path.filename()) && fs::canonical(path.parent_path(), ignored) !=
                                              fs::canonical(installation.libraries, ignored)) {
      strangers.insert(path);
    }
  }
  if (count == "0" || name == "none") {
    findings.push_back(
        {"device", State::wrong, "torch can be imported, but it sees no emulated GPU"});
  } else {
    findings.push_back({"device", State::good, fmt::format("torch sees {} × {}", count, name)});
  }
  if (!strangers.empty()) {
    findings.push_back({"order", State::warning,
                        fmt::format("also loaded, but the emulated ones are used first: {}",
                                    fmt::join(strangers, ", "))});
  }
}

Findings examine(const Choice& choice) {
  Findings findings;
  auto installation = launch::find_installation();
  if (installation) {
    findings.push_back({"maya", State::good,
                        fmt::format("{}, {} emulated libraries in {}", launch::version(),
                                    installation->preload.size(), installation->libraries)});
    if (!fs::exists(installation->programs + "/nvidia-smi")) {
      findings.push_back(
          {"nvidia-smi", State::warning,
           fmt::format("the emulated one is not in {}; reinstall maya", installation->programs)});
    }
  } else {
    findings.push_back({"maya", State::wrong, installation.error().message});
  }
  std::optional<catalog::Cluster> cluster;
  auto catalogue = catalog::Catalog::load();
  if (catalogue) {
    findings.push_back({"catalogue", State::good,
                        fmt::format("{} GPUs and {} clusters in {}", catalogue->gpus().size(),
                                    catalogue->clusters().size(), catalogue->directory())});
    if (auto found = catalogue->cluster("dgx-h100")) cluster = *found;
  } else {
    findings.push_back({"catalogue", State::wrong, catalogue.error().message});
  }

  auto python = check_python(choice, findings);
  if (python) {
    auto jax = launch::find_jax(*python, search_path());
    check_torch(*python, !jax || jax->cuda_major == 0, findings);
    if (jax) check_jax(*jax, findings);
    if (python->torch) check_triton(*python, findings);
    check_packages(*python, findings);
  }
  check_user_preload(findings);
  Scratch scratch;
  if (installation && cluster && !scratch.path().empty()) {
    if (auto written =
            launch::write_file(scratch.path() + "/device.txt", catalog::to_flat(*cluster));
        !written) {
      findings.push_back({"preload", State::wrong, written.error().message});
      return findings;
    }
    auto environment = launch::training_environment(launch::current_environment(), *installation,
                                                    {scratch.path(), catalogue->directory(), 0});
    if (!environment) {
      findings.push_back({"preload", State::wrong, environment.error().message});
      return findings;
    }
    check_preload(*environment, *installation, findings);
    if (python && python->torch && !python->torch->cuda.empty()) {
      check_device(*python, *environment, *installation, findings);
    }
  }
  return findings;
}

int doctor(const Choice& python, bool json) {
  Findings findings = examine(python);
  int wrong = 0, warnings = 0;
  for (const auto& finding : findings) {
    wrong += finding.state == State::wrong;
    warnings += finding.state == State::warning;
  }
  auto word = [](State state) {
    return state == State::good ? "ok" : state == State::warning ? "note" : "wrong";
  };
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& f : findings)
      list.push_back({{"subject", f.subject}, {"state", word(f.state)}, {"text", f.text}});
    fmt::print("{}\n",
               nlohmann::json{{"findings", list}, {"wrong", wrong}, {"notes", warnings}}.dump(2));
  } else {
    for (const auto& f : findings)
      fmt::print("{:<6} {:<10} {}\n", word(f.state), f.subject, f.text);
    fmt::print("\n{}\n", wrong      ? fmt::format("{} problem{} must be solved before `maya run` "
                                                       "works: see above",
                                                  wrong, wrong == 1 ? "" : "s")
                         : warnings ? "`maya run` will work, with the limits noted above"
                                    : "everything that `maya run` needs is installed");
  }
  return wrong ? failure : success;
}

}  // namespace

void add_doctor(CLI::App& app) {
  struct Options {
    std::string python;
    std::vector<std::string> command;
    bool json{};
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("doctor", "Check this machine and report what is missing");
  verb->footer(
      "Examples:\n"
      "  maya doctor\n"
      "  maya doctor .venv/bin/python\n"
      "  maya doctor torchrun train.py");
  verb->add_option("command", options->command,
                   "A Python, or a command whose Python is checked (default: the active virtual "
                   "environment, else the one that maya is in, else python3)");
  verb->add_option("--python", options->python, "The same, as an option");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] {
    const std::string named = !options->python.empty()    ? options->python
                              : !options->command.empty() ? options->command.front()
                                                          : "";
    finish(doctor(named.empty() ? default_python() : named_python(named), options->json));
  });
}

}  // namespace maya::cli
