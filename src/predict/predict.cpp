#include "predict/predict.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/secrets.h"
#include "base/visible.h"
#include "cost/job_estimator.h"
#include "maya/collate.h"
#include "maya/estimate.h"
#include "maya/network.h"
#include "network/open.h"
#include "predict/reuse.h"
#include "predict/run_directory.h"
#include "predict/scaled.h"
#include "predict/serving.h"
#include "predict/settings.h"
#include "predict/what_if.h"
#include "report/ending.h"
#include "report/format.h"
#include "report/memory.h"
#include "report/usage.h"

namespace maya::predict {
namespace {

Status check_size(const std::string& directory, const catalog::Cluster& cluster, int ranks) {
  if (ranks <= cluster.world_size()) return {};
  const int per_node = std::max(1, cluster.gpus_per_node);
  std::string fix = "name a cluster with enough GPUs";
  const std::string name = cluster.name.substr(0, cluster.name.find(':'));
  if (per_node > 1)
    fix = fmt::format("use --cluster {}:{}", name, (ranks + per_node - 1) / per_node);
  return Error{fmt::format("{} has {} ranks but {} has {} GPU{}: {}", directory, ranks,
                           cluster.name, cluster.world_size(), cluster.world_size() == 1 ? "" : "s",
                           fix)};
}

// "auto", "5" or the name of a range.
collate::Options collate_options(const Options& options, const catalog::Cluster& cluster,
                                 const RunFile& file) {
  collate::Options result;
  result.fold = options.fold;
  result.gpus_per_node = cluster.nodes > 1 ? cluster.gpus_per_node : 0;
  result.stand_in = file.stand_in;
  result.settled = file.virtual_clock;
  if (options.steps != "auto") {
    const char* end = options.steps.data() + options.steps.size();
    const auto [last, error] = std::from_chars(options.steps.data(), end, result.steps);
    if (error != std::errc() || last != end) result.steps = 0, result.step_range = options.steps;
  }
  return result;
}

// The speed of the recording machine relative to the reference host; both ran the same benchmark.
// Returns 0 and adds a note if it is not known: host times may then be wrong by that ratio.
double recorded_speed(const catalog::Catalog& catalog, const RunFile& file,
                      std::vector<std::string>& notes) {
  constexpr double least = 0.1, most = 10;  // plausible for a machine that runs PyTorch
  double speed = file.recorded_speed;
  if (speed <= 0 && file.benchmark_us > 0) {
    const double reference = reference_benchmark_us(catalog.directory());
    if (reference <= 0) return 0;
    speed = reference / file.benchmark_us;
  }
  if (speed >= least && speed <= most) return speed;
  notes.push_back(
      fmt::format("{}: host times are used as recorded; record the run again if they matter",
                  speed > 0 ? fmt::format("run.toml says that the recording machine is "
                                          "{:.3g} times the reference host, which is "
                                          "not plausible",
                                          speed)
                            : "run.toml does not say how fast the recording machine is"));
  return 0;
}

bool any_work(const std::vector<trace::Recording>& recordings) {
  for (const trace::Recording& recording : recordings)
    for (const trace::Record& record : recording.records)
      if ((record.kind >= trace::Kind::launch && record.kind <= trace::Kind::point_to_point) ||
          record.kind == trace::Kind::graph_launch || record.kind == trace::Kind::out_of_memory)
        return true;
  return false;
}

// Whether a rank ran out of memory and did not recover: no matrix work follows the failed request.
bool out_of_memory(const std::vector<trace::Recording>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const trace::Recording& recording) {
    const std::optional<report::Refusal> refusal = report::memory_use(recording).refusal;
    if (!refusal) return false;
    return std::none_of(recording.records.begin() + refusal->record, recording.records.end(),
                        [&](const trace::Record& record) {
                          return record.kind == trace::Kind::graph_launch ||
                                 (record.kind == trace::Kind::launch &&
                                  report::is_matrix_work(recording.ops[record.value].work));
                        });
  });
}

// For ranks that ended before a step was complete, or whose only step is of no use. Their calls may
// not match, so they are not collated; only their memory is reported.
job::Job job_without_steps(std::vector<trace::Recording> recordings) {
  job::Job job;
  job.world_size = recordings[0].identity.world_size;
  job.class_of_rank.assign(static_cast<std::size_t>(std::max(1, job.world_size)), 0);
  for (trace::Recording& recording : recordings) {
    const std::int32_t rank = recording.identity.rank;
    if (rank >= 0 && rank < job.world_size)
      job.class_of_rank[rank] = static_cast<std::uint32_t>(job.classes.size());
    job.classes.emplace_back();
    job.classes.back().ranks = {rank};
    job.classes.back().representative = rank;
    job.classes.back().recording = std::move(recording);
  }
  return job;
}

std::vector<trace::Recording> recordings_of(job::Job job) {
  std::vector<trace::Recording> recordings;
  for (job::RankClass& rank_class : job.classes)
    recordings.push_back(std::move(rank_class.recording));
  return recordings;
}

std::map<std::string, std::string> environment_of(const trace::Recording& recording) {
  return {recording.identity.environment.begin(), recording.identity.environment.end()};
}

// The versions of the libraries, if the recording has them.
estimate::Libraries libraries_of(const trace::Recording& recording) {
  estimate::Libraries libraries;
  for (const auto& [library, version] : recording.identity.versions)
    if (library == "torch") libraries.torch = version;
  return libraries;
}

// Whether the command failed, was killed or ran out of memory. Its recordings may then end
// anywhere, and repetition in them is not necessarily a step.
bool ended_badly(const Run& run) {
  if (run.file.exit_code != 0 || out_of_memory(run.recordings)) return true;
  return !run.file.stopped &&
         std::any_of(run.recordings.begin(), run.recordings.end(),
                     [](const trace::Recording& recording) { return !recording.complete; });
}

// For each class the recorded places of its representative's process; empty if there are none.
std::vector<report::Places> places_of(const std::string& directory, const job::Job& job) {
  std::vector<report::Places> places;
  for (const job::RankClass& one : job.classes) {
    places.emplace_back();
    if (one.derived_from >= 0) continue;  // this rank did not run
    const std::string path =
        fmt::format("{}/process-{}.places", directory, one.recording.identity.pid);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (auto read = report::read_places(path, one.recording)) places.back() = std::move(*read);
  }
  return places;
}

// When the run ended, in nanoseconds of the file system; 0: not known.
std::int64_t recorded_at(const std::string& directory) {
  struct stat info {};
  if (::stat((directory + "/run.toml").c_str(), &info) != 0) return 0;
  return info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

// With --clock virtual the times that a script prints are predictions for the cluster.
void trust_script_times(std::vector<std::string>& notes) {
  constexpr std::string_view values = "values that the GPU would have computed";
  for (std::string& note : notes)
    if (note.compare(0, values.size(), values) == 0)
      note =
          "values that the GPU would have computed (losses, metrics) read as zero; times that the "
          "script prints are the cluster's (--clock virtual)";
}

// For the terminal, which shows notes and not the table of the report.
void note_what_fits(Outcome& outcome) {
  std::vector<std::string> notes;
  for (const report::WhatIf& one : outcome.what_ifs)
    if (one.memory_bytes > 0)
      notes.push_back(fmt::format("fits with {}: {} of {}", one.what,
                                  report::human_bytes(static_cast<double>(one.memory_bytes)),
                                  report::human_bytes(static_cast<double>(one.capacity_bytes))));
  constexpr std::size_t most = 3;
  if (notes.size() > most) notes.resize(most);
  if (notes.empty() && outcome.prediction.out_of_memory->during_run)
    notes.push_back(
        "run it again with `maya run --no-memory-limit` to learn which micro-batch, "
        "recomputation or GPU would fit");
  auto& all = outcome.prediction.notes;
  all.insert(all.begin(), notes.begin(), notes.end());
}

}  // namespace

Result<Outcome> predict_run(const std::string& directory, const Options& options) {
  // Report wrong settings before reading the recordings, which may be large.
  if (Result<Settings> settings = parse_settings(options.settings); !settings)
    return settings.error();
  Result<Run> run = read_run(directory);
  if (!run) return run.error();
  return predict_recorded(std::move(*run), directory, options);
}

Result<Outcome> predict_recorded(Run recorded, const std::string& directory,
                                 const Options& options) {
  Result<Settings> settings = parse_settings(options.settings);
  if (!settings) return settings.error();
  // What-ifs need the recordings again; collate() consumes them.
  Run kept_for_what_ifs;
  if (options.what_ifs && options.keep_spans) kept_for_what_ifs = recorded;
  Run* const run = &recorded;
  const trace::Identity& identity = run->recordings[0].identity;

  const std::string spec = !options.cluster.empty()     ? options.cluster
                           : !run->file.cluster.empty() ? run->file.cluster
                                                        : identity.cluster;
  if (spec.empty())
    return Error{fmt::format(
        "{} has no cluster in run.toml and in its recordings: name one with --cluster", directory)};
  Reuse once;
  Reuse& models = options.reuse ? *options.reuse : once;
  Result<const catalog::Catalog*> catalog = models.catalog();
  if (!catalog) return catalog.error();
  Result<catalog::Cluster> cluster = (*catalog)->cluster(spec, settings->cluster);
  if (!cluster) return cluster.error();
  // emplace: a value from the user's --set has priority.
  if (const double speed = recorded_speed(**catalog, run->file, run->notes); speed > 0)
    cluster->extra.emplace("host.recorded_speed", speed);
  const int on_node = std::min<int>(identity.world_size, std::max(1, cluster->gpus_per_node));
  cluster->extra.emplace("host.ranks", std::max(1, on_node));
  if (Status status = check_size(directory, *cluster, identity.world_size); !status)
    return status.error();
  if (run->file.stopped) collate::cut_to_common_steps(run->recordings);
  const bool works = any_work(run->recordings);

  const auto estimator =
      models.estimator(*cluster, options.calibration, libraries_of(run->recordings[0]));
  if (!estimator) return estimator.error();
  const std::map<std::string, std::string> environment = environment_of(run->recordings[0]);
  Result<std::unique_ptr<network::Network>> made = network::open_network(*cluster, environment);
  if (!made) return made.error();
  const std::unique_ptr<network::Network> network = std::move(*made);
  if (identity.world_size > 1)
    for (std::string& note : network::environment_notes(environment))
      run->notes.push_back(std::move(note));
  const cost::JobEstimator sustained_estimator(**estimator, *cluster);
  const ScaledEstimator scaled_estimator(sustained_estimator, *settings);
  const ScaledNetwork scaled_network(*network, *settings);
  const estimate::Estimator& use_estimator =
      settings->changes_time() ? static_cast<const estimate::Estimator&>(scaled_estimator)
                               : sustained_estimator;
  const network::Network& use_network =
      settings->changes_time() ? static_cast<const network::Network&>(scaled_network) : *network;

  // Steps that the user specified are measured even if the command failed later.
  std::optional<report::Ending> ending;
  if (ended_badly(*run)) {
    const collate::Training training(run->recordings);
    ending = report::ending_of(run->recordings, training, run->file.exit_code);
    if (options.steps == "auto") report::keep_common_steps(run->recordings, training);
  }
  collate::Options collating = collate_options(options, *cluster, run->file);
  collating.whole_steps = ending && ending->whole_steps > 0 && options.steps == "auto";
  const bool no_step = !works || (ending && ending->whole_steps == 0 && options.steps == "auto");

  Outcome outcome;
  std::string unusable;
  if (no_step) {
    outcome.job = job_without_steps(std::move(run->recordings));
  } else {
    // The calls of ranks that failed may not match, even in the steps they completed.
    std::vector<trace::Recording> kept;
    if (ending) kept = run->recordings;
    Result<job::Job> job = collate::collate(std::move(run->recordings), collating);
    if (job) unusable = job->unusable_step;
    simulate::Options simulation;
    simulation.keep_spans = options.keep_spans;
    simulation.most_spans = options.most_spans;
    Result<simulate::Timeline> timeline =
        job ? simulate::simulate(*job, *cluster, use_estimator, use_network, simulation)
            : Result<simulate::Timeline>(job.error());
    if (!unusable.empty()) {
      outcome.job = job_without_steps(recordings_of(std::move(*job)));
    } else if (timeline) {
      outcome.job = std::move(*job);
      outcome.timeline = std::move(*timeline);
    } else if (ending) {
      outcome.job = job_without_steps(std::move(kept));
      run->notes.push_back("the steps could not be simulated: " + timeline.error().message);
    } else {
      return Error{fmt::format("{}: {}", directory, timeline.error().message)};
    }
  }
  outcome.cluster = std::move(*cluster);
  outcome.prediction =
      report::predict(outcome.job, outcome.timeline, {use_estimator, use_network}, outcome.cluster,
                      settings->units, ending ? &*ending : nullptr);
  if (!works && outcome.prediction.no_step.empty())
    outcome.prediction.no_step = "The command put no work on the GPU: only its memory is known";
  if (!unusable.empty()) {
    std::string& reason = outcome.prediction.no_step;
    reason = reason.empty() ? "No step time: " + unusable : reason + "; " + unusable;
  }
  outcome.prediction.settings = options.settings;
  for (const std::string& note : run->notes) outcome.prediction.notes.push_back(note);
  if (run->file.virtual_clock) trust_script_times(outcome.prediction.notes);
  // A client's times belong to the cluster they were read on.
  if (options.cluster.empty() || options.cluster == run->file.cluster) {
    const double gpus = outcome.prediction.gpus;
    auto serving = serving_of(directory, outcome.prediction.cost.usd_per_gpu_hour * gpus);
    if (!serving) {
      outcome.prediction.notes.push_back(serving.error().message);
    } else {
      // Engines kill their processes at their end.
      const bool ended_well = run->file.exit_code == 0 && !outcome.prediction.out_of_memory;
      if (serving->answered && ended_well && !outcome.prediction.no_step.empty())
        outcome.prediction.no_step =
            "A serving engine, which has no training step: see what its client saw";
      outcome.serving = std::move(serving->json);
    }
  }
  for (const std::string& note : run->file.notes) outcome.prediction.notes.push_back(note);
  if (!run->file.command.empty()) outcome.prediction.command = run->file.command;
  // Masked here too, because recordings of earlier versions contain the command as it was typed.
  outcome.prediction.command =
      base::visible(base::without_secrets(std::string_view(outcome.prediction.command)));
  if (!options.keep_spans) return outcome;
  outcome.places = places_of(directory, outcome.job);
  outcome.code =
      report::code_costs(outcome.job, outcome.timeline, outcome.places, recorded_at(directory));
  outcome.memory =
      report::memory_profiles(outcome.job, outcome.timeline, outcome.cluster.gpu, outcome.places);
  if (options.what_ifs) {
    outcome.what_ifs = what_would_help(kept_for_what_ifs, directory, options, outcome, models);
    if (outcome.prediction.out_of_memory) note_what_fits(outcome);
  }
  return outcome;
}

std::string to_json(const Outcome& outcome) {
  std::string text = report::to_json(outcome.prediction);
  const bool detailed = !outcome.timeline.spans.empty() || !outcome.memory.empty();
  if (!detailed && outcome.serving.empty()) return text;
  auto json = nlohmann::ordered_json::parse(text);
  if (!outcome.serving.empty()) json["serving"] = nlohmann::ordered_json::parse(outcome.serving);
  if (detailed) {
    const auto details = nlohmann::ordered_json::parse(report::details_json(outcome.page()));
    for (const auto& [key, value] : details.items()) json[key] = value;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Status write_file(const std::string& path, const std::string& bytes) {
  return base::write_file(path, bytes);
}

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t most = 256 << 20;  // a prediction of ten thousand ranks has a few MB
  return base::read_file(path, most);
}

Status write_results(const std::string& directory, const Outcome& outcome) {
  if (Status status = write_file(directory + "/prediction.json", to_json(outcome)); !status)
    return status;
  if (!outcome.timeline.spans.empty())
    if (Status status = write_file(directory + "/timeline.pftrace",
                                   report::perfetto_trace(outcome.job, outcome.timeline));
        !status)
      return status;
  // Also without a step: after running out of memory the page shows what was allocated.
  if (outcome.memory.empty()) return {};
  return write_file(directory + "/report.html", report::html_page(outcome.page()));
}

}  // namespace maya::predict
