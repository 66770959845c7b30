#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "launch/run_directory.h"
#include "maya/report.h"

namespace maya::cli {
namespace {

struct Options {
  std::string run, format{"perfetto"}, out;
  PredictOptions predict;
  bool json{};
};

struct File {
  std::string path, bytes;
};

std::vector<File> files(const Options& options, const predict::Outcome& outcome) {
  auto place = [&](const char* name) {
    return options.out.empty() ? options.run + "/" + name : options.out;
  };
  if (options.format == "perfetto")
    return {{place("timeline.pftrace"), report::perfetto_trace(outcome.job, outcome.timeline)}};
  if (options.format == "chrome")
    return {{place("timeline.json"), report::chrome_trace(outcome.job, outcome.timeline)}};
  if (options.format == "csv")
    return {{options.out.empty() ? "-" : options.out,
             report::csv_trace(outcome.job, outcome.timeline)}};
  if (options.format == "collapsed")
    return {{options.out.empty() ? "-" : options.out, report::collapsed_stacks(outcome.code)}};
  if (options.format == "speedscope")
    return {{place("flame.speedscope.json"),
             report::speedscope(outcome.code, outcome.prediction.command)}};
  // ASTRA-sim opens PREFIX.<rank>.et.
  const std::string folder = place("chakra");
  std::vector<File> list{{folder + "/comm_groups.json", report::chakra_groups(outcome.job)}};
  for (std::int32_t rank = 0; rank < outcome.job.world_size; ++rank)
    list.push_back({fmt::format("{}/chakra.{}.et", folder, rank),
                    report::chakra_trace(outcome.job, outcome.timeline, rank)});
  return list;
}

// Writes one snapshot for each class of ranks, named after its representative.
int write_memory(const Options& options, const predict::Outcome& outcome) {
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < outcome.job.classes.size(); ++c) {
    const auto snapshot = report::memory_snapshot(
        outcome.job.classes[c], c < outcome.places.size() ? outcome.places[c] : report::Places());
    if (!snapshot) return fail(fmt::format("{}: {}", options.run, snapshot.error().message));
    const std::string name =
        fmt::format("memory-rank-{}.pickle", outcome.job.classes[c].representative);
    const std::string path = (options.out.empty() ? options.run : options.out) + "/" + name;
    if (const Status status = predict::write_file(path, *snapshot); !status)
      return fail(status.error());
    if (options.out.empty()) launch::list_in_manifest(options.run, name);
    written.push_back(path);
    if (!options.json) fmt::print("{}\n", path);
  }
  if (options.json)
    fmt::print("{}\n",
               nlohmann::ordered_json({{"format", options.format}, {"files", written}}).dump(2));
  else
    fmt::print("open them at https://pytorch.org/memory_viz\n");
  return success;
}

int run(const Options& options) {
  auto asked = options.predict.parsed();
  if (!asked) return fail(asked.error(), usage);
  asked->keep_spans = true;
  const auto outcome = predict::predict_run(options.run, *asked);
  if (!outcome) return fail(outcome.error());
  if ((options.format == "collapsed" || options.format == "speedscope") && outcome->code.empty())
    return fail(fmt::format("{} has no stacks: record it with `maya run --stacks`", options.run));
  if (options.format == "memory") return write_memory(options, *outcome);
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  for (const File& file : files(options, *outcome)) {
    if (file.path == "-") {
      std::fwrite(file.bytes.data(), 1, file.bytes.size(), stdout);
      return success;
    }
    std::error_code ignored;
    if (options.format == "chakra")
      std::filesystem::create_directories(std::filesystem::path(file.path).parent_path(), ignored);
    if (const Status status = predict::write_file(file.path, file.bytes); !status)
      return fail(status.error());
    if (options.out.empty())
      launch::list_in_manifest(options.run,
                               options.format == "chakra"
                                   ? "chakra/"
                                   : std::filesystem::path(file.path).filename().string());
    written.push_back(file.path);
  }
  if (options.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json({{"format", options.format}, {"files", written}}).dump(2));
  } else {
    fmt::print("{}{}\n", written.back().get<std::string>(),
               written.size() > 1 ? fmt::format(" and {} more", written.size() - 1) : "");
    if (options.format == "perfetto") fmt::print("open it at https://ui.perfetto.dev\n");
  }
  return success;
}

}  // namespace

void add_trace(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "trace", "Write the predicted timeline of a run for a viewer or simulator");
  verb->footer(
      "Examples:\n"
      "  maya trace maya-runs/demo                                (for ui.perfetto.dev)\n"
      "  maya trace maya-runs/demo --format csv > ops.csv\n"
      "  maya trace maya-runs/demo --format chakra --out traces   (for ASTRA-sim)\n"
      "  maya trace maya-runs/demo --format speedscope            (flame graph, speedscope.app)\n"
      "  maya trace maya-runs/demo --format memory                (for pytorch.org/memory_viz)");
  verb->add_option("RUN", options->run, "Run directory of `maya run`")->required();
  verb->add_option("--format", options->format,
                   "perfetto, chrome, chakra, csv, speedscope, collapsed or "
                   "memory (the last three need a run with --stacks)")
      ->check(CLI::IsMember(
          {"perfetto", "chrome", "chakra", "csv", "speedscope", "collapsed", "memory"}))
      ->capture_default_str();
  options->predict.add_to(*verb);
  verb->add_option(
      "--out", options->out,
      "File, or for chakra and memory a folder (default: in RUN; csv and collapsed: on the "
      "terminal)");
  verb->add_flag("--json", options->json, "Print the names of the files as JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
