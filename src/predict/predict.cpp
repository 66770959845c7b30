#include "predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "cost/job_estimator.h"
#include "maya/collate.h"
#include "maya/estimate.h"
#include "maya/network.h"
#include "network/open.h"
#include "predict/run_directory.h"
#include "predict/scaled.h"
#include "predict/settings.h"
#include "report/memory.h"

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
  if (options.steps != "auto") {
    const char* end = options.steps.data() + options.steps.size();
    const auto [last, error] = std::from_chars(options.steps.data(), end, result.steps);
    if (error != std::errc() || last != end) result.steps = 0, result.step_range = options.steps;
  }
  return result;
}

// The recording machine against the reference host: both have run the same benchmark. 0: not known.
double recorded_speed(const catalog::Catalog& catalog, const RunFile& file) {
  if (file.recorded_speed > 0 || file.benchmark_us <= 0) return file.recorded_speed;
  const double reference = reference_benchmark_us(catalog.directory());
  return reference > 0 ? std::clamp(reference / file.benchmark_us, 0.05, 20.0) : 0;
}

bool any_work(const std::vector<trace::Recording>& recordings) {
  for (const trace::Recording& recording : recordings)
    for (const trace::Record& record : recording.records)
      if ((record.kind >= trace::Kind::launch && record.kind <= trace::Kind::point_to_point) ||
          record.kind == trace::Kind::graph_launch || record.kind == trace::Kind::out_of_memory)
        return true;
  return false;
}

bool out_of_memory(const std::vector<trace::Recording>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const trace::Recording& recording) {
    return report::memory_use(recording).refusal.has_value();
  });
}

// Ranks that ran out of memory end in the middle of their work and need not fit together: what they
// held is the result all the same.
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

std::map<std::string, std::string> environment_of(const trace::Recording& recording) {
  return {recording.identity.environment.begin(), recording.identity.environment.end()};
}

// The generation of libraries that ran, where the recording says.
estimate::Libraries libraries_of(const trace::Recording& recording) {
  estimate::Libraries libraries;
  for (const auto& [library, version] : recording.identity.versions)
    if (library == "torch") libraries.torch = version;
  return libraries;
}

// A command that failed may not have come as far as its first step.
std::string failure_note(int code, job::StepsFoundBy found_by) {
  const bool training =
      found_by != job::StepsFoundBy::period && found_by != job::StepsFoundBy::whole_run;
  return fmt::format("the command ended with code {}{}", code,
                     training ? ": measured is what it did before"
                              : " before a training step was seen: what is measured may be its "
                                "initialization");
}

}  // namespace

Result<Outcome> predict_run(const std::string& directory, const Options& options) {
  Result<Settings> settings = parse_settings(options.settings);
  if (!settings) return settings.error();
  Result<Run> run = read_run(directory);
  if (!run) return run.error();
  const trace::Identity& identity = run->recordings[0].identity;

  const std::string spec = !options.cluster.empty()     ? options.cluster
                           : !run->file.cluster.empty() ? run->file.cluster
                                                        : identity.cluster;
  if (spec.empty())
    return Error{fmt::format(
        "{} does not say which cluster it was recorded for: name one with --cluster", directory)};
  Result<catalog::Catalog> catalog = catalog::Catalog::load();
  if (!catalog) return catalog.error();
  Result<catalog::Cluster> cluster = catalog->cluster(spec, settings->cluster);
  if (!cluster) return cluster.error();
  // The recording machine's speed belongs to the recording, unless the user says otherwise.
  if (const double speed = recorded_speed(*catalog, run->file); speed > 0)
    cluster->extra.emplace("host.recorded_speed", speed);
  if (Status status = check_size(directory, *cluster, identity.world_size); !status)
    return status.error();
  const bool works = any_work(run->recordings);
  if (!works)
    run->notes.push_back(
        "no step: the command put no work on the GPU; memory is all there is to tell");

  auto estimator = estimate::make_estimator(cluster->gpu, catalog->directory(), options.calibration,
                                            libraries_of(run->recordings[0]));
  if (!estimator) return estimator.error();
  const std::map<std::string, std::string> environment = environment_of(run->recordings[0]);
  Result<std::unique_ptr<network::Network>> made = network::open_network(*cluster, environment);
  if (!made) return made.error();
  const std::unique_ptr<network::Network> network = std::move(*made);
  if (identity.world_size > 1)
    for (std::string& note : network::environment_notes(environment))
      run->notes.push_back(std::move(note));
  const cost::JobEstimator in_job(**estimator, *cluster);
  const ScaledEstimator scaled_estimator(in_job, *settings);
  const ScaledNetwork scaled_network(*network, *settings);
  const estimate::Estimator& use_estimator =
      settings->changes_time() ? static_cast<const estimate::Estimator&>(scaled_estimator) : in_job;
  const network::Network& use_network =
      settings->changes_time() ? static_cast<const network::Network&>(scaled_network) : *network;

  Outcome outcome;
  std::vector<trace::Recording> kept;
  if (!works || out_of_memory(run->recordings)) kept = run->recordings;
  Result<job::Job> job = works ? collate::collate(std::move(run->recordings),
                                                  collate_options(options, *cluster, run->file))
                               : Result<job::Job>(Error{"no work"});
  simulate::Options simulation;
  simulation.keep_spans = options.keep_spans;
  Result<simulate::Timeline> timeline =
      job ? simulate::simulate(*job, *cluster, use_estimator, use_network, simulation)
          : Result<simulate::Timeline>(job.error());
  if (timeline) {
    outcome.job = std::move(*job);
    outcome.timeline = std::move(*timeline);
  } else if (!kept.empty()) {
    outcome.job = job_without_steps(std::move(kept));
  } else {
    return Error{fmt::format("{}: {}", directory, timeline.error().message)};
  }
  outcome.cluster = std::move(*cluster);
  outcome.prediction = report::predict(outcome.job, outcome.timeline, {use_estimator, use_network},
                                       outcome.cluster, settings->work);
  outcome.prediction.settings = options.settings;
  if (run->file.exit_code != 0 && outcome.prediction.step && !outcome.prediction.out_of_memory)
    run->notes.push_back(failure_note(run->file.exit_code, outcome.job.found_by));
  for (const std::string& note : run->notes) outcome.prediction.notes.push_back(note);
  if (!run->file.command.empty()) outcome.prediction.command = run->file.command;
  return outcome;
}

Status write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool good = file != nullptr;
  if (good) good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int first_error = errno;
  if (file) good = std::fclose(file) == 0 && good;
  if (good) return {};
  return Error{
      fmt::format("cannot write {}: {}", path, std::strerror(first_error ? first_error : errno))};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status write_results(const std::string& directory, const Outcome& outcome) {
  if (Status status =
          write_file(directory + "/prediction.json", report::to_json(outcome.prediction));
      !status)
    return status;
  if (outcome.timeline.spans.empty()) return {};
  if (Status status = write_file(directory + "/timeline.pftrace",
                                 report::perfetto_trace(outcome.job, outcome.timeline));
      !status)
    return status;
  return write_file(directory + "/report.html",
                    report::html_page(outcome.prediction, outcome.job, outcome.timeline));
}

}  // namespace maya::predict
