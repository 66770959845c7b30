#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/python_verbs.h"
#include "maya/report.h"
#include "predict/predict.h"

namespace maya::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string html;
  bool json{};
};

// Loads a prediction.json or a run directory. A run without a prediction is predicted now.
Result<report::Prediction> load(const std::string& path) {
  std::string file = path;
  if (std::filesystem::is_directory(path)) {
    file = path + "/prediction.json";
    if (!std::filesystem::exists(file)) {
      auto outcome = predict::predict_run(path);
      if (!outcome) return outcome.error();
      return std::move(outcome->prediction);
    }
  }
  const auto text = predict::read_file(file);
  if (!text) return text.error();
  return report::from_json(*text, file);
}

int run(const Options& options) {
  if (!options.html.empty()) {
    std::vector<std::string> words{"--html", options.html};
    words.insert(words.end(), options.runs.begin(), options.runs.end());
    return run_python("compare_page", words);
  }
  std::vector<std::pair<std::string, report::Prediction>> runs;
  for (const std::string& path : options.runs) {
    auto prediction = load(path);
    if (!prediction) return fail(prediction.error());
    runs.emplace_back(path, std::move(*prediction));
  }
  if (!options.json) {
    fmt::print("{}", report::comparison(runs, report::style_of_stdout()));
    return success;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [path, prediction] : runs)
    list.push_back({{"run", path},
                    {"prediction", nlohmann::ordered_json::parse(report::to_json(prediction))}});
  fmt::print("{}\n", list.dump(2));
  return success;
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("compare", "Compare predictions side by side");
  verb->footer(
      "Examples:\n"
      "  maya compare maya-runs/ddp maya-runs/fsdp\n"
      "  maya predict maya-runs/ddp --cluster dgx-a100 --out a100.json\n"
      "  maya compare maya-runs/ddp a100.json\n"
      "  maya compare maya-runs/ddp maya-runs/fsdp --html comparison.html");
  verb->add_option(
          "RUN", options->runs,
          "Run directories or prediction.json files; the others are compared with the first")
      ->required()
      ->expected(2, -1);
  verb->add_option("--html", options->html,
                   "Write an HTML page instead: differences by part of the step, module and op")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "Print JSON instead of the table");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
