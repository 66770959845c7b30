// toml++, included the same way everywhere: it is header-only, so two files that configure it
// differently would silently mix two libraries.
//
// toml++ asserts on some damaged input instead of reporting it; as an exception it is a message
// too. Callers catch what is thrown.
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
