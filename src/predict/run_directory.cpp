#include "predict/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/files.h"
#include "base/visible.h"
#include "catalog/tomlplusplus.h"

namespace maya::predict {
namespace {

namespace fs = std::filesystem;

// The rank in the name of a recording: 12 for rank-12.maya and for rank-12.2.maya, which is a later
// process of the same rank. A process without a rank (process-4711.maya: the launcher was killed
// before it renamed the file) was the only one, so it is rank 0.
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view before = "rank-", after = ".maya", unnamed = "process-";
  if (name.size() <= before.size() + after.size() ||
      name.substr(name.size() - after.size()) != after)
    return std::nullopt;
  if (name.rfind(unnamed, 0) == 0) return 0;
  if (name.rfind(before, 0) != 0) return std::nullopt;
  int rank = 0;
  const char* end = name.data() + name.size() - after.size();
  auto [last, error] = std::from_chars(name.data() + before.size(), end, rank);
  if (error != std::errc()) return std::nullopt;
  int again = 0;
  if (last != end && *last == '.') {
    const auto [final, wrong] = std::from_chars(last + 1, end, again);
    if (wrong != std::errc()) return std::nullopt;
    last = final;
  }
  return last == end ? std::optional(rank) : std::nullopt;
}

std::size_t amount_of_work(const trace::Recording& recording) {
  return static_cast<std::size_t>(
      std::count_if(recording.records.begin(), recording.records.end(), [](const trace::Record& r) {
        return (r.kind >= trace::Kind::launch && r.kind <= trace::Kind::point_to_point) ||
               r.kind == trace::Kind::graph_launch;
      }));
}

Result<RunFile> run_file_of(const toml::table& table, const std::string& path) {
  RunFile run;
  if (const auto version = table["version"].value<std::int64_t>(); version && *version > 1)
    return Error{
        fmt::format("{}: version {} is newer than this program reads (1); use the maya that "
                    "recorded the run",
                    path, *version)};
  if (const toml::array* words = table["command"].as_array()) {
    bool of_bench = false;
    for (const toml::node& word : *words) {
      run.command += (run.command.empty() ? "" : " ") + word.value_or(std::string());
      // `maya serve-bench` starts the engine from a part of its own inside of the run, which has
      // the name of a file with its plan. The user asked for what follows.
      if (of_bench) run.command.clear();
      of_bench = word.value_or(std::string()) == "maya.serve_bench.inside";
    }
  } else {
    run.command = table["command"].value_or(std::string());
  }
  run.command = base::visible(run.command);
  run.cluster = base::visible(table["cluster"].value_or(std::string()));
  run.stopped = table["stopped"].value_or(false);
  run.exit_code = table["exit_code"].value_or(0);
  run.virtual_clock = table["clock"].value_or(std::string()) == "virtual";
  for (const char* name : {"notes", "clock_notes"})  // the second: of runs before version 0.2
    if (const toml::array* notes = table[name].as_array())
      for (const toml::node& note : *notes)
        run.notes.push_back(base::visible(note.value_or(std::string())));
  run.recorded_speed = table["recorded_on"]["speed"].value_or(0.0);
  run.benchmark_us = table["recorded_on"]["benchmark_us"].value_or(0.0);
  if (const toml::array* ranks = table["ranks"]["stand_in"].as_array())
    for (const toml::node& rank : *ranks)
      run.stand_in.push_back(static_cast<std::int32_t>(rank.value_or(std::int64_t{-1})));
  return run;
}

}  // namespace

double reference_benchmark_us(const std::string& catalogue) {
  try {
    return toml::parse_file(catalogue + "/reference-host.toml")["benchmark_us"].value_or(0.0);
  } catch (const toml::parse_error&) {
    return 0;  // a catalogue without a reference host: host times are used as recorded
  }
}

namespace {

Result<RunFile> read_run_file(const std::string& path) {
  if (!fs::exists(path)) return RunFile{};  // run.toml is optional
  const char* fix =
      "run.toml is written by `maya run`: restore it, or remove it and name the cluster with "
      "--cluster";
  try {
    constexpr std::size_t most = 4 << 20;  // the command of a run is at most 2 MB
    auto text = base::read_file(path, most);
    if (!text) return text.error();
    return run_file_of(toml::parse(*text, path), path);
  } catch (const toml::parse_error& error) {
    return Error{fmt::format("{}:{}: {}; {}", path, error.source().begin.line,
                             std::string(error.description()), fix)};
  } catch (const std::exception& error) {
    return Error{fmt::format("{}: {}; {}", path, error.what(), fix)};
  }
}

}  // namespace

namespace {

// A command that succeeded and ended a worker of its own (session/signals.cpp) did not lose it: its
// recording is whole, though nobody closed it.
void forgive_ended(const std::string& directory, Run& run) {
  constexpr std::size_t most = 1 << 20;
  const auto text = base::read_file(directory + "/ended.txt", most);
  if (run.file.exit_code != 0 || !text) return;
  std::set<std::uint64_t> ended;
  const char* end = text->data() + text->size();
  for (const char* at = text->data(); at < end; ++at) {
    std::uint64_t process = 0;
    const auto [last, error] = std::from_chars(at, end, process);
    if (error != std::errc()) return;
    ended.insert(process);
    at = last;
  }
  for (trace::Recording& recording : run.recordings)
    if (ended.contains(recording.identity.pid)) recording.complete = true;
}

}  // namespace

Result<Run> read_run(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    return Error{fmt::format("{}: no such run directory; `maya run --out {} -- COMMAND` makes one",
                             directory, directory)};
  Run run;
  Result<RunFile> file = read_run_file(directory + "/run.toml");
  if (!file) return file.error();
  run.file = std::move(*file);

  std::vector<std::pair<int, std::string>> paths;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (const auto rank = rank_of(entry.path().filename().string()))
      paths.emplace_back(*rank, entry.path().string());
  if (paths.empty())
    return Error{
        fmt::format("{}: no recording (rank-N.maya) in it: the command did not touch the GPU, "
                    "or this is not a run directory",
                    directory)};
  std::sort(paths.begin(), paths.end());

  std::vector<std::optional<Result<trace::Recording>>> read(paths.size());
  std::string chosen;
  int several = -1;
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++)
      read[i] = trace::read(paths[i].second);
  };
  std::vector<std::thread> helpers;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min(cores, paths.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();

  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<trace::Recording>& one = *read[i];
    if (!one) return one.error();
    if (one->identity.rank != paths[i].first)
      return Error{
          fmt::format("{} says it is rank {}: recordings of different runs are mixed in {}; "
                      "put each run into its own directory",
                      paths[i].second, one->identity.rank, directory)};
    // A rank may have several processes, for example if a script starts several programs. The one
    // with the most work is assumed to be the training.
    if (!run.recordings.empty() && run.recordings.back().identity.rank == paths[i].first) {
      const bool more = amount_of_work(**read[i]) > amount_of_work(run.recordings.back());
      if (more) run.recordings.back() = std::move(**read[i]);
      if (more) chosen = paths[i].second;
      several = paths[i].first;
    } else {
      run.recordings.push_back(std::move(**read[i]));
      if (several < 0) chosen = paths[i].second;
    }
    read[i].reset();
  }
  if (several >= 0)
    run.notes.push_back(fmt::format(
        "several processes of rank {} used the GPU; the prediction is for the one with the most "
        "work ({})",
        several, fs::path(chosen).filename().string()));
  forgive_ended(directory, run);
  return run;
}

}  // namespace maya::predict
