// The request of maya-start to a template. Only programs whose start a fork can reproduce exactly
// are requested.
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
  int target{};                      // index of the script, the name of the module or the code
  std::vector<std::string> options;  // of the interpreter; the template is started with them too
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

// Sends arguments, environment, working directory and file descriptors to a template. Returns false
// if it has ended.
bool send_request(int connection, const Program& program, char* const* words,
                  const std::vector<int>& descriptors);

bool read_whole(int fd, void* to, std::size_t bytes);

}  // namespace maya::start
