#include "launch/host_speed.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <vector>

namespace maya::launch {
namespace {

struct Machine {
  std::array<std::uint64_t, 16> registers{};
  std::vector<std::uint64_t> memory;
};

using Action = void (*)(Machine&, std::uint32_t);

std::uint64_t& at(Machine& m, std::uint32_t code, int shift) {
  return m.registers[(code >> shift) & 15];
}
std::uint64_t& cell(Machine& m, std::uint64_t key) {
  return m.memory[(key * 0x9e3779b97f4a7c15ULL) >> 48];
}

[[gnu::noinline]] void add(Machine& m, std::uint32_t code) { at(m, code, 4) += at(m, code, 8) + 1; }
[[gnu::noinline]] void mix(Machine& m, std::uint32_t code) {
  std::uint64_t& r = at(m, code, 4);
  r ^= r << 13, r ^= r >> 7, r ^= r << 17;
}
[[gnu::noinline]] void load(Machine& m, std::uint32_t code) {
  at(m, code, 4) ^= cell(m, at(m, code, 8));
}
[[gnu::noinline]] void store(Machine& m, std::uint32_t code) {
  cell(m, at(m, code, 8)) += at(m, code, 4);
}
[[gnu::noinline]] void chase(Machine& m, std::uint32_t code) {
  std::uint64_t key = at(m, code, 8);
  for (int i = 0; i < 3; ++i) key += cell(m, key);
  at(m, code, 12) = key;
}
[[gnu::noinline]] void choose(Machine& m, std::uint32_t code) {
  if (at(m, code, 4) & 4)
    add(m, code >> 1);
  else if (at(m, code, 8) & 8)
    mix(m, code >> 2);
  else
    store(m, code >> 3);
}

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000ULL +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

double host_benchmark_us() {
  constexpr Action actions[] = {add, mix, load, store, chase, choose, choose, load};
  constexpr int rounds = 60, length = 8192;
  Machine machine;
  machine.memory.resize(1 << 16);
  std::uint64_t seed = 88172645463325252ULL;
  auto random = [&] { return seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; };
  for (auto& r : machine.registers) r = random();
  for (auto& m : machine.memory) m = random();
  std::vector<std::uint32_t> program(length);
  for (auto& code : program) code = static_cast<std::uint32_t>(random() >> 20);
  std::uint64_t best = UINT64_MAX;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t begin = now_ns();
    for (std::uint32_t code : program) actions[code & 7](machine, code);
    best = std::min(best, now_ns() - begin);
  }
  // Uses the result, so that the compiler cannot remove the benchmark.
  volatile std::uint64_t keep = machine.registers[3];
  static_cast<void>(keep);
  return static_cast<double>(best) / 1e3;
}

}  // namespace maya::launch
