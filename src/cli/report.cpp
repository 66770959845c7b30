#include "maya/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "predict/predict.h"

namespace maya::cli {
namespace {

struct Options {
  std::string run, out;
  PredictOptions predict;
  bool open{}, json{};
};

// Starts xdg-open in the background, without output on the terminal.
bool open_in_browser(std::string path) {
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = "xdg-open";
  char* words[] = {program.data(), path.data(), nullptr};
  pid_t child = 0;
  const bool started = posix_spawnp(&child, "xdg-open", &quiet, nullptr, words, environ) == 0;
  posix_spawn_file_actions_destroy(&quiet);
  return started;
}

int run(const Options& options) {
  auto asked = options.predict.parsed();
  if (!asked) return fail(asked.error(), usage);
  asked->keep_spans = asked->what_ifs = true;
  asked->most_spans = predict::spans_of_a_report;
  const auto outcome = predict::predict_run(options.run, *asked);
  if (!outcome) return fail(outcome.error());
  const std::string path = options.out.empty() ? options.run + "/report.html" : options.out;
  const std::string page = report::html_page(outcome->page());
  if (const Status status = predict::write_file(path, page); !status) return fail(status.error());
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json({{"file", path}}).dump(2));
  else
    fmt::print("{}\n", path);
  if (options.open && !open_in_browser(path))
    return fail(fmt::format("no xdg-open on this machine: open {} in a browser", path));
  return success;
}

}  // namespace

void add_report(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("report", "Write the HTML report of a run");
  verb->footer("Example:\n  maya report maya-runs/demo --open");
  verb->add_option("RUN", options->run, "Run directory of `maya run`")->required();
  options->predict.add_to(*verb);
  verb->add_option("--out", options->out, "File to write (default: RUN/report.html)")
      ->type_name("FILE");
  verb->add_flag("--open", options->open, "Open it in the browser");
  verb->add_flag("--json", options->json, "Print the file's name as JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
