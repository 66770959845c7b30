// What the first word of a command is: found on PATH as a shell would, and fit for preloading or
// not.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::launch {

struct Executable {
  std::string path;         // what will be executed
  std::string interpreter;  // of a script ("#!"): the program that runs it; else empty
  std::string loader;       // ELF interpreter of the program; empty: statically linked
};

// `search_path` is PATH's value. Errors: not found, a directory, not executable, and programs whose
// loader ignores LD_PRELOAD (set-user-ID of another user) or is not glibc's (musl).
Result<Executable> find_executable(const std::string& name, const std::string& search_path);

}  // namespace maya::launch
