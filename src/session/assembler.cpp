// A ptxas that a training process starts (XLA does for every module) has this library preloaded
// too: when it ends, its PTX is kept for the process that will load the cubin. See
// decode/assembled.h.
#include <errno.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "decode/assembled.h"
#include "device/cubin.h"

namespace maya::session {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

__attribute__((destructor)) void keep_what_was_assembled() {
  if (!program_invocation_short_name || std::strcmp(program_invocation_short_name, "ptxas") != 0)
    return;
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (!run) return;
  try {
    std::string cubin, ptx;
    auto words = command_line();
    for (std::size_t i = 1; i < words.size(); ++i) {
      if ((words[i] == "-o" || words[i] == "--output-file") && i + 1 < words.size())
        cubin = contents(words[++i]);
      else if (words[i][0] != '-' && ptx.empty())
        if (auto text = contents(words[i]); text.find(".version") != std::string::npos) ptx = text;
    }
    if (cubin.empty() || ptx.empty()) return;
    std::size_t bytes = device::image_bytes(cubin.data(), cubin.size());
    if (bytes == 0 || bytes > cubin.size()) return;
    decode::keep_assembled(run, std::string_view(cubin).substr(0, bytes), ptx);
  } catch (...) {  // a ptxas must not fail for our sake
  }
}

}  // namespace
}  // namespace maya::session
