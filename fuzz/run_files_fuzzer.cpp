// The text files of a run directory that somebody sent: run.toml, ended.txt, serving.json. The
// first byte selects which of them has the other bytes.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "maya/trace.h"
#include "predict/run_directory.h"
#include "predict/serving.h"
#include "trace/codec.h"
#include "trace/format.h"
#include "trace/writer.h"

namespace {

// A directory with the recording of one rank, which has no work.
struct Directory {
  Directory() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
    maya::trace::Writer writer;
    if (!writer.open(path + "/rank-0.maya")) __builtin_trap();
    maya::trace::Identity identity;
    identity.world_size = 1, identity.pid = 7, identity.gpu = "h100-sxm";
    std::string bytes;
    maya::trace::encode(identity, bytes);
    writer.define(maya::trace::format::Define::identity, 0, bytes);
    writer.close();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/maya-run-files-fuzzer-" + std::to_string(getpid());
};

const std::string& directory() {
  static const Directory made;
  return made.path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const char* const names[] = {"/run.toml", "/serving.json", "/ended.txt"};
  const std::string path = directory() + names[data[0] % 3];
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr) return 0;
  std::fwrite(data + 1, 1, size - 1, out);
  std::fclose(out);
  if (data[0] % 3 == 1) {
    auto serving = maya::predict::serving_of(directory(), 2.5);
    if (!serving && serving.error().message.find(path) == std::string::npos) __builtin_trap();
  } else {
    auto run = maya::predict::read_run(directory());
    if (!run && run.error().message.find(path) == std::string::npos) __builtin_trap();
    if (run && run->file.command.find('\033') != std::string::npos) __builtin_trap();
  }
  std::remove(path.c_str());
  return 0;
}
