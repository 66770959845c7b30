// The `maya` program: a tree of verbs (command.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/visible.h"
#include "catalog/suggest.h"
#include "cli/command.h"
#include "cli/python_verbs.h"
#include "cli/verbs.h"  // generated from the list in CMakeLists.txt

namespace maya::cli {

void finish(int code) {
  std::fflush(stdout);
  if (code != success) throw CLI::RuntimeError(code);
}

int fail(const Error& error, int code) { return fail(error.message, code); }

int fail(std::string_view message, int code) {
  std::fflush(stdout);
  // Messages may quote text from files and arguments that are not trusted.
  fmt::print(stderr, "maya: {}\n", base::visible_lines(message));
  return code;
}

}  // namespace maya::cli

namespace maya::cli {
namespace {

int run_verb(int argc, char** argv) {
  if (const auto code = run_python_verb(argc, argv)) return *code;
  CLI::App app{
      "Run the training command you already have on a machine with no GPU, and learn how long "
      "a step would take,\nhow much memory it needs and what it would cost on the cluster you "
      "name.",
      "maya"};
  app.set_version_flag("--version", "maya " MAYA_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);
  add_verbs(app);
  add_python_verbs(app);
  // After the verbs, because a verb would inherit it.
  app.footer(
      "Example:\n"
      "  maya run --cluster dgx-h100 -- torchrun --nproc-per-node 8 train.py\n"
      "  maya predict maya-runs/demo --cluster dgx-a100\n\n"
      "`maya VERB --help` shows the options of a verb.");
  try {
    // `maya run … -- COMMAND`: the verb takes everything from the first word that is not one of its
    // options. The `--` is removed, because CLI11 would end the verb there.
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "run")
      if (auto mark = std::find(words.begin(), words.end(), "--"); mark != words.end())
        words.erase(mark);
    std::reverse(words.begin(), words.end());  // the order that CLI11 expects
    app.parse(words);
    return success;
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::string verb = "maya";
    for (const CLI::App* parsed : app.get_subcommands()) verb += " " + parsed->get_name();
    // CLI11 only reports that a verb is missing. Name the word that is not a verb.
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      std::vector<std::string> names;
      for (const CLI::App* known : app.get_subcommands({})) names.push_back(known->get_name());
      return fail(fmt::format("unknown verb '{}'{}; see `maya --help`", argv[1],
                              maya::catalog::suggestion(argv[1], names)),
                  usage);
    }
    if (argc == 1) {
      fmt::print("{}", app.help());
      return usage;
    }
    return fail(fmt::format("{}; see `{} --help`", wrong.what(), verb), usage);
  } catch (const std::exception& unexpected) {
    return fail(fmt::format("internal error: {}; please report it", unexpected.what()));
  }
}

}  // namespace
}  // namespace maya::cli

int main(int argc, char** argv) {
  try {
    return maya::cli::run_verb(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "maya: %s\n", error.what());
    return maya::cli::failure;
  }
}
