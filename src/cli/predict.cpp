#include "predict/predict.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "maya/report.h"

namespace maya::cli {
namespace {

struct Options {
  std::string run, out;
  PredictOptions predict;
  bool json{};
};

int run(const Options& options) {
  const auto asked = options.predict.parsed();
  if (!asked) return fail(asked.error(), usage);
  const auto outcome = predict::predict_run(options.run, *asked);
  if (!outcome) return fail(outcome.error());
  const std::string json = predict::to_json(*outcome);
  // The prediction of the run is stored in its directory. A what-if is stored only with --out.
  const bool what_if = !asked->cluster.empty() || !asked->settings.empty();
  const std::string out =
      options.out.empty() && !what_if ? options.run + "/prediction.json" : options.out;
  fmt::print("{}",
             options.json ? json : report::summary(outcome->prediction, report::style_of_stdout()));
  if (!out.empty())
    if (const Status written = predict::write_file(out, json); !written)
      return fail(written.error(), not_stored);
  return success;
}

}  // namespace

void add_predict(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("predict", "Predict a recorded run, unchanged or with a what-if");
  verb->footer(
      "Examples:\n"
      "  maya predict maya-runs/demo\n"
      "  maya predict maya-runs/demo --cluster dgx-a100 --json\n"
      "  maya predict maya-runs/demo --set communication=0 --set scale.attention=0.5");
  verb->add_option("RUN", options->run, "Run directory of `maya run`")->required();
  options->predict.add_to(*verb);
  verb->add_option("--out", options->out,
                   "Write prediction.json to this file (default: into RUN, unless it is a what-if)")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "Print JSON instead of the summary");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
