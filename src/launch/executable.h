// Finds the program of a command as a shell would, and checks that libraries can be preloaded into
// it.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::launch {

struct Executable {
  std::string path;         // what will be executed
  std::string interpreter;  // of a script ("#!"): the program that runs it; else empty
  std::string loader;       // ELF interpreter of the program; empty: statically linked
};

// `search_path` is the value of PATH. Errors: not found, a directory, not executable, a program
// whose loader ignores LD_PRELOAD (set-user-ID of another user), or one that is linked against
// musl.
Result<Executable> find_executable(const std::string& name, const std::string& search_path);

}  // namespace maya::launch
