// The places of a run with --stacks: text that names lines and modules of another user's program.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "report/places.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/maya-places-fuzzer-" + std::to_string(getpid());
  static const maya::trace::Recording recording = [] {
    maya::trace::Recording made;
    for (std::uint16_t i = 0; i < 64; ++i) {
      maya::trace::Record record{};
      record.kind = maya::trace::Kind::launch, record.thread = i % 3;
      made.records.push_back(record);
    }
    return made;
  }();
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr) return 0;
  std::fwrite("maya places 1\n", 1, 14, out);
  std::fwrite(data, 1, size, out);
  std::fclose(out);
  auto places = maya::report::read_places(path, recording);
  std::remove(path.c_str());
  if (!places || places->of_record.size() != recording.records.size()) __builtin_trap();
  for (const std::uint32_t stack : places->of_record) {
    if (stack >= places->stacks.size()) __builtin_trap();
    if (places->stacks[stack].module >= places->modules.size()) __builtin_trap();
    if (const auto* own = places->own(stack); own && own->file.find('\033') != std::string::npos)
      __builtin_trap();  // no escape sequences
  }
  return 0;
}
