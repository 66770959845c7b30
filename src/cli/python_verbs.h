// Verbs that are Python: `maya calibrate` is `python -m maya.calibrate`. What profiles, search
// spaces and published cases need (SQLite, Optuna, torch) lives there; the program finds the
// package and the interpreter, and hands the words over as they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace maya::cli {

// Lists those whose module is installed in the program's help.
void add_python_verbs(CLI::App& app);

// Becomes the verb, if the first word is one; otherwise gives nothing back. An exit code: it could
// not.
std::optional<int> run_python_verb(int argc, char** argv);

// Becomes `python -m maya.<name> ARGUMENTS…`; returns only with a failure.
int run_python(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace maya::cli
