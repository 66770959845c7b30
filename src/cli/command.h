// Each verb of the `maya` program is one file: src/cli/<verb>.cpp defines
// `void add_<verb>(CLI::App&)`, which adds a subcommand with its options, its help and its
// callback. The verbs are listed in src/cli/CMakeLists.txt.
//
//   void add_gpus(CLI::App& app) {
//     auto options = std::make_shared<Options>();
//     CLI::App* verb = app.add_subcommand("gpus", "GPUs of the catalogue");
//     verb->footer("Example:\n  maya gpus --json");
//     verb->add_flag("--json", options->json, "Print JSON");
//     verb->callback([options] { finish(run(*options)); });
//   }
//
// Exit codes: 0 success, 1 failure, 2 usage error, 3 if the answer was printed but could not be
// stored. The last three print one line on stderr. A verb that runs the command of a user (`maya
// run`) ends with the exit code of that command: `finish(code)`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "maya/result.h"

namespace maya::cli {

inline constexpr int success = 0;
inline constexpr int failure = 1;
inline constexpr int usage = 2;
inline constexpr int not_stored = 3;  // the answer was printed but could not be written

// Ends the verb with this exit code. Call it last in a callback.
void finish(int code);

// Prints "maya: <message>" on stderr and returns the exit code: `return fail(error);`.
int fail(const Error& error, int code = failure);
int fail(std::string_view message, int code = failure);

}  // namespace maya::cli
