// Includes toml++ with the same configuration everywhere. It is header-only: two files that
// configure it differently would violate the one-definition rule.
//
// toml++ fails an assertion on some damaged input. Here the assertion throws an exception, which
// callers must catch.
#pragma once

#include <stdexcept>

#define TOML_ASSERT(condition)                                  \
  do {                                                          \
    if (!(condition)) throw std::runtime_error("damaged text"); \
  } while (false)
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"
#include <toml++/toml.h>
#pragma GCC diagnostic pop
