// What maya-start asks of a template, and what it may ask: only programs whose start a fork
// reproduces exactly.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maya::start {

enum class Kind : std::uint32_t { none, script, module, code };

struct Program {
  bool reproducible{};
  Kind kind{};
  int target{};                      // index of the script, the module's name or the code
  std::vector<std::string> options;  // of the interpreter, which the template is started with too
};

// Reads the words of a Python interpreter.
Program parse_words(char* const* words);

enum class Verdict : std::int32_t { refused, started, other_environment };

struct Answer {
  Verdict verdict{};
  std::int32_t child{};
};

// Descriptors of this process that survive an exec.
std::vector<int> open_descriptors();

// Words, environment, directory and descriptors, to a template. False when it is gone.
bool send_request(int connection, const Program& program, char* const* words,
                  const std::vector<int>& descriptors);

bool read_whole(int fd, void* to, std::size_t bytes);

}  // namespace maya::start
