// Measures a recorded kernel launch: prints ns per call of cudaLaunchKernel on a recorded stream,
// ns per call of an empty function with the same signature in another shared library, and the
// ratio. Both are measured in the same run, as the minimum of several rounds, because the machine
// is noisy.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "catalog/flat.h"
#include "maya/catalog.h"
#include "maya/trace.h"

namespace {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};
using Launch = int (*)(const void*, Dim, Dim, void**, std::size_t, void*);

const char* const kernel_name =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
    "11FillFunctorIfEESt5arrayIPcLm1EELb0EEEviT0_T1_";

// A fat binary with one PTX kernel, in the layout of nvcc.
std::string fat_binary() {
  std::string ptx =
      std::string(".version 8.0\n.target sm_80\n.visible .entry ") + kernel_name +
      "(\n.param .u32 a,\n.param .align 4 .b8 b[4],\n.param .align 8 .b8 c[8]\n) { ret; }\n";
  ptx.resize((ptx.size() + 8) / 8 * 8, '\0');
  char header[80] = {};
  auto put = [&](std::size_t at, auto value) { std::memcpy(header + at, &value, sizeof value); };
  put(0, std::uint32_t{0xBA55ED50}), put(4, std::uint16_t{1}), put(6, std::uint16_t{16}),
      put(8, std::uint64_t{64 + ptx.size()});
  put(16, std::uint16_t{1}), put(18, std::uint16_t{0x101}), put(20, std::uint32_t{64}),
      put(24, std::uint64_t{ptx.size()});
  put(44, std::uint32_t{80}), put(72, std::uint64_t{ptx.size()});
  return std::string(header, 80) + ptx;
}

template <class F>
double best_ns(F&& call) {
  constexpr int rounds = 15, calls = 20000;
  double best = 1e9;
  for (int r = 0; r < rounds; ++r) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / calls);
  }
  return best;
}

}  // namespace

int main(int, char** argv) {
  auto catalog = maya::catalog::Catalog::load();
  if (!catalog) return std::fprintf(stderr, "%s\n", catalog.error().message.c_str()), 1;
  auto cluster = catalog->cluster("h100-sxm");
  if (!cluster) return std::fprintf(stderr, "%s\n", cluster.error().message.c_str()), 1;
  std::string directory = (std::filesystem::temp_directory_path() / "maya-bench-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  std::ofstream(directory + "/device.txt") << maya::catalog::to_flat(*cluster);
  setenv("MAYA_RUN_DIR", directory.c_str(), 1);

  std::string libraries =
      (std::filesystem::path(argv[0]).parent_path().parent_path() / "lib" / "maya").string();
  void* runtime = dlopen((libraries + "/libcudart.so.13").c_str(), RTLD_NOW);
  void* empty = dlopen(
      (std::filesystem::path(argv[0]).parent_path() / "libempty_launch.so").c_str(), RTLD_NOW);
  if (runtime == nullptr || empty == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  auto launch = reinterpret_cast<Launch>(dlsym(runtime, "cudaLaunchKernel"));
  auto stub = reinterpret_cast<Launch>(dlsym(empty, "empty_launch"));
  auto push = reinterpret_cast<unsigned (*)(Dim, Dim, std::size_t, void*)>(
      dlsym(runtime, "__cudaPushCallConfiguration"));
  auto pop = reinterpret_cast<int (*)(Dim*, Dim*, std::size_t*, void*)>(
      dlsym(runtime, "__cudaPopCallConfiguration"));
  auto register_binary =
      reinterpret_cast<void** (*)(void*)>(dlsym(runtime, "__cudaRegisterFatBinary"));
  auto register_function =
      reinterpret_cast<void (*)(void**, const char*, char*, const char*, int, void*, void*, void*,
                                void*, int*)>(dlsym(runtime, "__cudaRegisterFunction"));
  auto allocate = reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(runtime, "cudaMalloc"));
  if (!launch || !stub || !push || !pop || !register_binary || !register_function || !allocate)
    return 1;

  static std::string binary = fat_binary();
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* data;
    const void* extra = nullptr;
  } wrapper{.data = binary.data()};
  static char host;
  void** module = register_binary(&wrapper);
  register_function(module, &host, nullptr, kernel_name, -1, nullptr, nullptr, nullptr, nullptr,
                    nullptr);
  void* memory = nullptr;
  allocate(&memory, 64 << 20);
  int count = 1 << 20;
  float value = 0;
  void* arguments[] = {&count, &value, &memory};
  Dim grid{1024, 1, 1}, block{256, 1, 1};
  if (int error = launch(&host, grid, block, arguments, 0, nullptr))
    return std::fprintf(stderr, "launch: error %d\n", error), 1;

  double recorded = best_ns([&] { launch(&host, grid, block, arguments, 0, nullptr); });
  double nothing = best_ns([&] { stub(&host, grid, block, arguments, 0, nullptr); });
  // Launches like compiled code, which pushes and pops the configuration around the call.
  auto whole = [&](Launch how) {
    push(grid, block, 0, nullptr);
    Dim g, b;
    std::size_t shared;
    void* stream;
    pop(&g, &b, &shared, &stream);
    how(&host, g, b, arguments, shared, stream);
  };
  double recorded_whole = best_ns([&] { whole(launch); });
  double nothing_whole = best_ns([&] { whole(stub); });
  std::printf("recorded launch            %7.1f ns   (limit 250)\n", recorded);
  std::printf("empty function             %7.1f ns\n", nothing);
  std::printf("ratio, the call alone      %7.1f     (limit 3)\n", recorded / nothing);
  std::printf("ratio, with <<<>>> around  %7.1f     (%.1f against %.1f ns)\n",
              recorded_whole / nothing_whole, recorded_whole, nothing_whole);
  std::filesystem::remove_all(directory);
  return 0;
}
