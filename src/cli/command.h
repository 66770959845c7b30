// A verb of the `maya` program is one file: src/cli/<verb>.cpp defines `void
// add_<verb>(CLI::App&)`, which hangs a subcommand with its options, its help and its callback on
// the program. The names are listed once, in src/cli/CMakeLists.txt.
//
//   void add_gpus(CLI::App& app) {
//     auto options = std::make_shared<Options>();
//     CLI::App* verb = app.add_subcommand("gpus", "GPUs of the catalogue");
//     verb->footer("Example:\n  maya gpus --json");
//     verb->add_flag("--json", options->json, "Print JSON");
//     verb->callback([options] { finish(run(*options)); });
//   }
//
// Exit codes: 0 success, 2 usage error, 1 failure, 3 if the answer was printed and could not be
// stored, each of the last three with one line on stderr. A
// verb that runs a user's command (`maya run`) ends with that command's code: `finish(code)`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "maya/result.h"

namespace maya::cli {

inline constexpr int success = 0;
inline constexpr int failure = 1;
inline constexpr int usage = 2;
inline constexpr int not_stored = 3;  // the answer was printed and could not be written

// Ends the verb with this exit code. Call it last in a callback.
void finish(int code);

// "maya: <message>" on stderr; gives back the exit code, so `return fail(error);` reads well.
int fail(const Error& error, int code = failure);
int fail(std::string_view message, int code = failure);

}  // namespace maya::cli
