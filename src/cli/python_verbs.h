// Verbs that are written in Python: `maya calibrate` runs `python -m maya.calibrate`. They need
// Python libraries (SQLite, Optuna, torch). The program finds the package and the interpreter and
// passes the arguments on unchanged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace maya::cli {

// Adds the verbs whose module is installed to the program's help.
void add_python_verbs(CLI::App& app);

// If the first word is such a verb, replaces this process by it. Returns nullopt if it is not one,
// and an exit code if the verb could not be started.
std::optional<int> run_python_verb(int argc, char** argv);

// Replaces this process by `python -m maya.<name> ARGUMENTS…`. Returns only if that fails.
int run_python(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace maya::cli
