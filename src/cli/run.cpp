// maya run: runs a training command on the emulated cluster, records it and predicts its step.
#include <unistd.h>

#include <fmt/format.h>

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/visible.h"
#include "catalog/flat.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "launch/executable.h"
#include "launch/host_speed.h"
#include "launch/installation.h"
#include "launch/job.h"
#include "launch/python.h"
#include "launch/run_directory.h"
#include "launch/run_file.h"
#include "launchers/nodes.h"
#include "launchers/workers.h"
#include "maya/catalog.h"
#include "maya/report.h"
#include "maya/trace.h"
#include "predict/predict.h"
#include "predict/run_directory.h"
#include "predict/settings.h"

namespace maya::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string cluster{"dgx-h100"}, out, ranks{"all"}, steps{"auto"}, stop_after,
      expect_ranks{"all"};
  std::vector<std::string> set;
  std::string start{"auto"}, clock{"recorded"};
  int nodes{}, at_once{};
  double memory_slack{};
  bool no_predict{}, no_report{}, no_probe{}, json{}, quiet{}, stacks{}, no_memory_limit{};
};

// "train_gpt" for "torchrun --nproc-per-node 8 examples/train_gpt.py --layers 4"
std::string run_name(const std::vector<std::string>& command) {
  for (const auto& word : command) {
    fs::path path(word);
    if (path.extension() == ".py" || path.extension() == ".sh") return path.stem().string();
  }
  return fs::path(command.front()).filename().string();
}

Result<catalog::Cluster> resolve_cluster(const catalog::Catalog& catalogue, const Options& options,
                                         const predict::Settings& settings, int nodes,
                                         std::string& spec) {
  spec = options.cluster;
  auto cluster = catalogue.cluster(spec, settings.cluster);
  if (!cluster || cluster->nodes >= nodes) return cluster;
  if (spec.find(':') != std::string::npos || fs::exists(spec)) {
    return Error{
        fmt::format("the command needs {} nodes, but the cluster {} has {}; name a larger one",
                    nodes, spec, cluster->nodes)};
  }
  spec +=
      fmt::format(":{}", nodes);  // without a count the cluster has as many as the command needs
  return catalogue.cluster(spec, settings.cluster);
}

// In a process of a run the emulated libraries are preloaded first.
bool is_inside_a_run(const launch::Environment& user) {
  auto preload = user.find("LD_PRELOAD");
  return preload != user.end() && preload->second.find("libmaya_device") != std::string::npos;
}

int count_recordings(const std::string& directory) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename().string();
    count += name.rfind("rank-", 0) == 0 && entry.path().extension() == ".maya";
  }
  return count;
}

// The number of ranks of the recorded job; 0: there is no recording.
int recorded_world(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (entry.path().extension() == ".maya")
      if (auto recording = trace::read(entry.path().string()))
        return recording->identity.world_size;
  return 0;
}

// Prints the notes that processes of the run have written for the user, each distinct line once.
void print_notes(const std::string& directory) {
  std::ifstream file(directory + "/notes.txt");
  std::set<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    if (seen.insert(line).second) fmt::print(stderr, "maya: {}\n", base::visible(line));
  }
}

// The first program that was started without the preloaded libraries, or empty.
std::string unreached(const std::string& directory) {
  std::ifstream file(directory + "/unreached.txt");
  std::string line;
  std::getline(file, line);
  return base::visible(line);
}

// Whether the disk has no room for a recording, which reserves one megabyte.
bool disk_is_full(const std::string& directory) {
  struct statvfs disk {};
  return statvfs(directory.c_str(), &disk) == 0 &&
         static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < 2 << 20;
}

// One sentence that says why a successful command left no recording.
std::string why_no_recording(const launch::Executable& executable, const std::string& directory) {
  if (!fs::is_directory(directory))
    return fmt::format("nothing was recorded: {} was removed while the command ran", directory);
  if (disk_is_full(directory))
    return fmt::format("nothing was recorded: the disk of {} is full; choose another with --out",
                       directory);
  if (auto line = unreached(directory); !line.empty()) {
    return fmt::format(
        "nothing was recorded: {}; it is not emulated. Keep LD_PRELOAD, LD_LIBRARY_PATH and MAYA_* "
        "when starting it (`env -i` and `sudo` remove them)",
        line);
  }
  auto path = launch::python_of(executable);
  if (!path) {
    return executable.loader.empty() && executable.interpreter.empty()
               ? "nothing was recorded: the program is linked statically, and Maya replaces shared "
                 "libraries only"
               : "nothing was recorded: no process of the command used CUDA";
  }
  auto python = launch::inspect_python(*path);
  if (python && !python->torch) {
    return fmt::format("nothing was recorded: the command did not use CUDA ({} has no torch)",
                       *path);
  }
  if (python && python->torch->cuda.empty()) {
    return fmt::format(
        "nothing was recorded: torch {} of {} is a build without CUDA; install a CUDA build of "
        "torch "
        "(no NVIDIA package is needed)",
        python->torch->version, *path);
  }
  return "nothing was recorded: the command did not use the device (does it run on the CPU? "
         "`maya doctor` checks the "
         "set-up)";
}

// `auto` forks where many programs of one kind start: in a search, and where one rank of each group
// runs and further stages follow the first.
Result<launch::Starts> choose_starts(const std::string& how, bool unique,
                                     const launch::Environment& user,
                                     const launch::Installation& installation) {
  const std::string starter = launch::Starts::starter(installation);
  const bool possible = access(starter.c_str(), X_OK) == 0;
  if (how == "forked" && !possible)
    return Error{
        fmt::format("run: --start forked needs {}, which is not there: build it (`cmake "
                    "--build build --target maya_start`) or use --start plain",
                    starter)};
  if (how == "plain" || !possible) return launch::Starts();
  auto starts = launch::Starts::of_search(user);
  const bool wanted = how == "forked" || unique;
  if (wanted && !starts.by_fork()) return launch::Starts::create();
  return starts;
}

int print_prediction(const std::string& directory, const std::string& shown,
                     const std::string& spec, const predict::Pairs& settings,
                     const Options& options) {
  predict::Options asked;
  asked.cluster = spec;
  asked.settings = settings;
  asked.steps = options.steps;
  asked.keep_spans = asked.what_ifs = !options.no_report;
  asked.most_spans = predict::spans_of_a_report;
  auto outcome = predict::predict_run(directory, asked);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", options.json ? predict::to_json(*outcome)
                                : report::summary(outcome->prediction, report::style_of_stdout()));
  std::fflush(stdout);  // show the answer before the page and the timeline are written
  if (auto written = predict::write_results(directory, *outcome); !written)
    return fail(written.error(), not_stored);
  if (!options.json && !options.no_report)
    fmt::print("\n  Report      {}/report.html{}\n", shown,
               options.stacks || options.no_memory_limit
                   ? ""
                   : "   (with --stacks also by line and module of your program)");
  return success;
}

// "3" → 3, "auto" → enough for a reliable answer, "" → 0: the command is not stopped.
Result<int> steps_to_stop_after(const std::string& text) {
  constexpr int enough = 3;
  if (text.empty()) return 0;
  if (text == "auto") return enough;
  int steps = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (code != std::errc{} || end != text.data() + text.size() || steps < 1)
    return Error{fmt::format("--stop-after {}: expected a number of steps, or auto", text)};
  return steps;
}

int run(const Options& options, std::vector<std::string> command) {
  if (!command.empty() && command.front() == "--") command.erase(command.begin());
  if (command.empty()) return fail("run: no command given; write it after --", usage);
  if (command.front().size() > 1 && command.front()[0] == '-') {
    return fail(fmt::format("run: unknown option {}", command.front()), usage);
  }
  const bool unique = options.ranks == "unique";
  auto ranks = launchers::listed_ranks(unique ? "0" : options.ranks);
  if (!ranks)
    return fail(fmt::format("run: --ranks {}: {}", options.ranks, ranks.error().message), usage);
  auto expected = launchers::listed_ranks(options.expect_ranks);
  if (!expected)
    return fail(
        fmt::format("run: --expect-ranks {}: {}", options.expect_ranks, expected.error().message),
        usage);
  if (!expected->empty() && (!unique || expected->front() != 0))
    return fail("run: --expect-ranks needs --ranks unique and a list that begins with rank 0",
                usage);
  auto stop_after = steps_to_stop_after(options.stop_after);
  if (!stop_after) return fail(fmt::format("run: {}", stop_after.error().message), usage);
  if (options.nodes < 0) return fail("run: --nodes must be a positive number", usage);

  auto installation = launch::find_installation();
  if (!installation) return fail(installation.error());
  auto user = launch::current_environment();
  if (auto outer = user.find("MAYA_RUN_DIR"); outer != user.end() && is_inside_a_run(user))
    return fail(
        fmt::format("run: this is a `maya run` inside another, which records to {}; start "
                    "the command without the inner one",
                    outer->second));
  user.erase("MAYA_STACKS");
  if (options.stacks || options.no_memory_limit) user["MAYA_STACKS"] = "1";
  user.erase("MAYA_NO_MEMORY_LIMIT");
  if (options.no_memory_limit) user["MAYA_NO_MEMORY_LIMIT"] = "1";
  user.erase("MAYA_MEMORY_SLACK");
  if (options.memory_slack > 0) user["MAYA_MEMORY_SLACK"] = fmt::format("{}", options.memory_slack);
  auto path = user.find("PATH");
  // With the PATH that the command gets, so that `maya run -- nvidia-smi` runs the emulated one.
  auto executable = launch::find_executable(
      command.front(),
      installation->programs + ":" + (path == user.end() ? "/usr/bin:/bin" : path->second));
  if (!executable) return fail(executable.error());
  auto asked = launchers::nodes_asked(command, user);
  if (!asked) return fail(asked.error(), usage);
  int nodes = options.nodes ? options.nodes : *asked;
  predict::Pairs pairs;
  for (const auto& text : options.set) {
    auto pair = predict::split_setting(text);
    if (!pair) return fail(pair.error(), usage);
    pairs.push_back(*pair);
  }
  auto settings = predict::parse_settings(pairs);
  if (!settings) return fail(settings.error(), usage);
  std::string spec;
  auto catalogue = catalog::Catalog::load();
  if (!catalogue) return fail(catalogue.error());
  auto cluster = resolve_cluster(*catalogue, options, *settings, nodes, spec);
  if (!cluster) return fail(cluster.error());
  launch::Job job;
  job.command = command;
  job.executable = *executable;
  job.user = user;
  job.installation = *installation;
  job.catalogue = catalogue->directory();
  job.nodes = nodes;
  job.gpus_per_node = cluster->gpus_per_node;
  job.ranks = *ranks;
  job.unique = unique;
  job.expected = *expected;
  job.probe = unique && !options.no_probe && options.clock != "virtual";
  job.at_once = options.at_once;
  job.stop_after = *stop_after;
  auto alone = launch::starts_ranks_alone(job);
  if (!alone) return fail(fmt::format("run: --ranks: {}", alone.error().message), usage);

  auto starts =
      choose_starts(options.start, unique && options.clock != "virtual", user, *installation);
  if (!starts) return fail(starts.error());
  auto directory = launch::RunDirectory::create(options.out, run_name(command));
  if (!directory) return fail(directory.error());
  launch::RunFile file;
  file.command = command;
  file.directory = fs::current_path().string();
  file.cluster = spec;
  file.gpu = cluster->gpu.name;
  file.nodes = nodes;
  file.gpus_per_node = cluster->gpus_per_node;
  file.started = launch::now_utc();
  file.benchmark_us = launch::host_benchmark_us();
  const bool virtual_clock = options.clock == "virtual";
  if (virtual_clock) {
    // The processes scale their host time in the same way as the prediction.
    const double reference = predict::reference_benchmark_us(catalogue->directory());
    const double speed = reference > 0 ? reference / file.benchmark_us : 1;
    cluster->extra.emplace("host.recorded_speed", speed);
    job.clock_scale =
        cluster->extra["host.recorded_speed"] / (cluster->host.speed > 0 ? cluster->host.speed : 1);
    file.clock = options.clock;
  }
  std::string run_file = directory->path() + "/run.toml";
  if (auto status =
          launch::write_file(directory->path() + "/device.txt", catalog::to_flat(*cluster));
      !status) {
    return fail(status.error());
  }
  if (auto status = launch::write_file(run_file, launch::to_toml(file)); !status)
    return fail(status.error());

  for (const auto& remark : launch::preload_remarks(user))
    fmt::print(stderr, "maya: {}\n", remark.text);
  job.directory = directory->path();
  job.shown = directory->shown();
  job.starts = &*starts;
  if (!options.quiet)
    job.headline = fmt::format("{} on {} × {} ({})", base::visible(command.front()),
                               cluster->gpus_per_node * nodes, cluster->gpu.name, spec);
  job.fits_together = [&](bool stopped) -> Status {
    // The prediction reads this to know whether the ranks may have ended at different places.
    file.stop_after = *stop_after;
    file.stopped = stopped;
    if (auto written = launch::write_file(run_file, launch::to_toml(file)); !written)
      return written.error();
    predict::Options asked;
    asked.cluster = spec;
    asked.steps = options.steps;
    auto predicted = predict::predict_run(directory->path(), asked);
    if (!predicted) return predicted.error();
    return {};
  };
  predict::Options so_far;
  so_far.cluster = spec;
  so_far.settings = pairs;
  so_far.steps = options.steps;
  Progress progress(directory->path(), so_far);
  if (!options.quiet)
    job.status = [&progress](const launch::Moment& moment) { return progress.line(moment); };
  auto ended = launch::run_job(std::move(job));
  if (!ended) return fail(ended.error());
  const int code = ended->code;

  // A script may start more nodes than the command says. If the cluster was given without a node
  // count, it grows.
  const int per_node = cluster->gpus_per_node;
  if (spec == options.cluster && spec.find(':') == std::string::npos && !fs::exists(spec) &&
      per_node > 1) {
    file.nodes = std::max(nodes, (recorded_world(directory->path()) + per_node - 1) / per_node);
    if (file.nodes > cluster->nodes) file.cluster = spec += fmt::format(":{}", file.nodes);
  }
  file.ended = launch::now_utc();
  // Measured again, in case the machine was busy the first time.
  if (!virtual_clock) file.benchmark_us = std::min(file.benchmark_us, launch::host_benchmark_us());
  file.exit_code = code;
  file.notes = ended->notes;
  file.stop_after = *stop_after;
  file.stopped = ended->stopped;
  launch::name_orphans(directory->path());
  // The values that ranks exchanged are no longer needed and may be large.
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path(directory->path()) / "exchange", ignored);
  file.recordings = count_recordings(directory->path());
  if (auto status = launch::write_file(run_file, launch::to_toml(file)); !status)
    fail(status.error());
  print_notes(directory->path());
  for (const std::string& line : ended->notes)
    fmt::print(stderr, "maya: {}\n", base::visible(line));
  if (ended->failed) fmt::print(stderr, "maya: {}\n", base::visible(launch::words(*ended->failed)));
  if (*stop_after > 0 && code == 0)
    fmt::print(
        stderr, "maya: {}\n",
        ended->stopped
            ? fmt::format("{} steady steps of every rank are recorded: the command was stopped",
                          *stop_after)
            : fmt::format("the command ended by itself before {} steady steps were detected",
                          *stop_after));
  if (file.recordings == 0) {
    if (code == 0) return fail(why_no_recording(*executable, directory->path()), code);
    auto line = unreached(directory->path());
    fail(fmt::format(
        "nothing was recorded: the command ended with code {} before it used the device{}", code,
        line.empty() ? "" : fmt::format(" ({})", line)));
    return code;
  }
  if (code != 0) {
    fmt::print(stderr, "maya: the command ended with code {}; its work until then is recorded\n",
               code);
  }
  if (options.no_predict) return code;
  int predicted = print_prediction(directory->path(), directory->shown(), spec, pairs, options);
  return code ? code : predicted;
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "run", "Run a training command on an emulated cluster and predict its step");
  verb->footer(
      "Examples:\n"
      "  maya run --cluster dgx-h100 -- torchrun --nproc-per-node 8 train.py\n"
      "  maya run --cluster a100-80gb-sxm -- python train.py --batch 16\n"
      "  maya run --cluster dgx-a100 -- torchrun --nnodes 2 --node-rank 0 --nproc-per-node 8 "
      "train.py\n"
      "A command for one node of several is started once per node, in parallel, each with its own "
      "node rank.\n"
      "The exit code is that of the command. If that is 0, it is 1 if nothing can be predicted "
      "from "
      "the recording,\nand 3 if the prediction was printed but could not be stored.");
  verb->add_option("--cluster", options->cluster,
                   "Cluster[:nodes], GPU, or a TOML file (see `maya clusters`)")
      ->capture_default_str();
  verb->add_option("--out", options->out,
                   "Directory of the run (default: maya-runs/<time>-<script>)");
  verb->add_option(
          "--ranks", options->ranks,
          "Ranks to run: all, unique (one rank of each group that does identical work) or a list "
          "(0-1,8-56/8)")
      ->capture_default_str();
  verb->add_flag(
      "--no-probe", options->no_probe,
      "With --ranks unique, do not run the last rank to check that it does the same work "
      "as the first");
  verb->add_option("--expect-ranks", options->expect_ranks,
                   "With --ranks unique, the ranks that an earlier run of the same layout needed: "
                   "they start at once, without rank 0 alone in front");
  verb->add_option("--at-once", options->at_once,
                   "With a list of ranks, run at most this many at the same time")
      ->check(CLI::Range(2, 1 << 22));
  verb->add_option("--stop-after", options->stop_after,
                   "Stop the command when every rank has recorded this many steady steps (auto: as "
                   "many as a reliable answer needs); its exit handlers do not run");
  verb->add_option("--steps", options->steps, "Steps to average over: auto, or the last N")
      ->capture_default_str();
  verb->add_option("--nodes", options->nodes,
                   "Start the command this many times, as on this many nodes");
  verb->add_option("--set", options->set, "Change one figure of the cluster: key=value, repeatable")
      ->allow_extra_args(false);
  verb->add_option("--start", options->start,
                   "How Python programs of the job start: plain, forked from a process that has "
                   "imported torch, or auto (forked in a search and with --ranks unique)")
      ->check(CLI::IsMember({"auto", "plain", "forked"}))
      ->capture_default_str();
  verb->add_option(
          "--clock", options->clock,
          "Time that the command sees: recorded (of this machine) or virtual (of the cluster, see "
          "docs/virtual-time.md)")
      ->check(CLI::IsMember({"recorded", "virtual"}))
      ->capture_default_str();
  verb->add_flag("--stacks", options->stacks,
                 "Record the Python line and the module that issued each op; the report then shows "
                 "time and memory by line and module (Python 3.11 or later)");
  verb->add_flag(
      "--no-memory-limit", options->no_memory_limit,
      "Let the command use more memory than the GPU has: the whole step is recorded, and "
      "the report says what would make it fit (implies --stacks)");
  verb->add_option("--memory-slack", options->memory_slack,
                   "Let the command use this share of memory more than the GPU has (0.01: 1 %); "
                   "the prediction still compares with what it has")
      ->check(CLI::Range(0.0, 0.5));
  verb->add_flag("--no-report", options->no_report,
                 "Write only prediction.json, not report.html and not the timeline");
  verb->add_flag("--no-predict", options->no_predict, "Record only");
  verb->add_flag("--json", options->json,
                 "Print prediction.json at the end instead of the summary");
  verb->add_flag("--quiet", options->quiet,
                 "Print no line before the command starts, and none about its progress");
  verb->prefix_command();
  verb->callback([options, verb] { finish(run(*options, verb->remaining())); });
}

}  // namespace maya::cli
