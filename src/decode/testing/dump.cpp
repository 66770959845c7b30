// Prints what every kernel of the corpus decodes to, with arguments made up in several ways:
// compare the output before and after a change of the decoders that is meant to change nothing.
//
//   build/bin/decode_dump src/decode/testdata/torch_kernels.txt > before.txt
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "decode/decode.h"
#include "op/text.h"

using namespace maya;
using namespace maya::decode;

namespace {

void print(const Semantics& s) {
  if (s.kind == Semantics::Kind::unknown) return;
  std::printf(" values %d %s %g %g %lld %lld %llx", static_cast<int>(s.kind), s.function.c_str(),
              s.scalar, s.scalar2, static_cast<long long>(s.k), static_cast<long long>(s.from),
              static_cast<unsigned long long>(s.seed));
  for (const auto* list : {&s.outputs, &s.inputs})
    for (const auto& o : *list) {
      std::printf(" %s:%s:%llx", list == &s.outputs ? "out" : "in",
                  std::string(enum_name(o.dtype)).c_str(),
                  static_cast<unsigned long long>(o.address));
      for (int i = 0; i < o.rank; ++i)
        std::printf(":%lldx%lld", static_cast<long long>(o.size[i]),
                    static_cast<long long>(o.stride[i]));
    }
  for (const auto& part : s.parts) print(part);
}

void print(const Decoder& decoder, const Decoded& d) {
  std::printf("  %s%s%s%lld", to_text(d.op.work, true).c_str(), d.recognised ? "" : " unrecognised",
              decoder.touches_values() ? " touches" : "",
              static_cast<long long>(decoder.touches_values_up_to()));
  for (const auto& a : d.accesses)
    std::printf(" %c%llx+%lld%s", a.write ? 'w' : 'r', static_cast<unsigned long long>(a.address),
                static_cast<long long>(a.bytes), a.at_least ? "+" : "");
  print(d.semantics);
  std::printf("\n");
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 1;
  std::ifstream file(words[1]);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    int instances = 0;
    Kernel kernel;
    fields >> instances >> kernel.mangled;
    std::vector<std::vector<std::byte>> storage;
    for (std::string part; fields >> part;) {
      kernel.parameter_offsets.push_back(static_cast<std::uint16_t>(std::stoi(part)));
      kernel.parameter_sizes.push_back(
          static_cast<std::uint16_t>(std::stoi(part.substr(part.find(':') + 1))));
      storage.emplace_back(kernel.parameter_sizes.back());
    }
    std::vector<void*> pointers;
    for (auto& s : storage) pointers.push_back(s.data());
    auto decoder = prepare(kernel);
    std::printf("%s\n", kernel.demangled.c_str());
    Launch launch{&kernel, {{6, 2, 1}, {32, 4, 1}}, nullptr, nullptr, nullptr};
    print(*decoder, decoder->decode(launch));
    launch.arguments = pointers.data();
    // Words of small numbers that all differ, in 4 bytes and in 8, and noise.
    std::uint32_t noise = 12345;
    for (int round = 0; round < 4; ++round) {
      std::uint32_t next = 3;
      for (auto& s : storage)
        for (std::size_t at = 0; at + 4 <= s.size(); at += 4) {
          noise = noise * 1664525u + 1013904223u;
          std::uint32_t word = round == 3 ? noise : round == 1 && at % 8 == 4 ? 0 : next;
          if (round == 2) word = at % 8 == 0 ? noise >> 20 : s.size() == 8 ? 0x7f00 : noise >> 22;
          std::memcpy(s.data() + at, &word, 4);
          next += 7;
        }
      print(*decoder, decoder->decode(launch));
    }
  }
}
