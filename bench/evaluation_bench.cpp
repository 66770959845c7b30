// Measures one evaluation of the network model and of the kernel estimator without a cache: sizes
// never repeat. With --require it fails above 2 µs for a collective or 1 µs for a kernel.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cpu_time.h"
#include "maya/catalog.h"
#include "maya/estimate.h"
#include "maya/network.h"

namespace {

using namespace maya;

constexpr int evaluations = 20000;

// An addition in memory as a reference that is measured on the same machine at the same time.
double bare_ns() {
  volatile double sum = 0;
  const double start = seconds();
  for (int i = 0; i < evaluations; ++i) sum = sum + i;
  return 1e9 * (seconds() - start) / evaluations;
}

bool within(const std::string& what, double limit_ns, const std::function<double(int)>& evaluate) {
  volatile double sink = 0;
  for (int i = 0; i < 1000; ++i) sink = sink + evaluate(i + evaluations);
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    const double start = seconds();
    for (int i = 0; i < evaluations; ++i) sink = sink + evaluate(i);
    best = std::min(best, 1e9 * (seconds() - start) / evaluations);
  }
  std::printf("%-44s %8.0f ns  (limit %4.0f)  %6.0f x an addition\n", what.c_str(), best, limit_ns,
              best / bare_ns());
  return best <= limit_ns;
}

}  // namespace

int main(int argc, char** argv) {
  const bool require = argc > 1 && std::strcmp(argv[1], "--require") == 0;
  bool ok = true;
  auto catalog = catalog::Catalog::load();
  if (!catalog) return std::fprintf(stderr, "%s\n", catalog.error().message.c_str()), 1;
  for (const char* spec : {"dgx-h100", "dgx-h100:4", "p4d:16"}) {
    auto cluster = catalog->cluster(spec);
    if (!cluster) return std::fprintf(stderr, "%s\n", cluster.error().message.c_str()), 1;
    auto network = network::make_network(*cluster);
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(cluster->world_size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    ok &= within(std::string("all-reduce on ") + spec, 2000, [&](int i) {
      Collective op;
      op.kind = CollectiveKind::all_reduce, op.dtype = DType::bf16, op.bytes = 1 << 20;
      op.bytes += 64 * i;
      return network->collective(op, ranks).ns;
    });
  }
  auto gpu = catalog->gpu("h100-sxm");
  if (!gpu) return std::fprintf(stderr, "%s\n", gpu.error().message.c_str()), 1;
  auto estimator = estimate::make_estimator(*gpu, catalog->directory());
  if (!estimator) return std::fprintf(stderr, "%s\n", estimator.error().message.c_str()), 1;
  const auto kernel = [&](const char* what, auto&& work) {
    ok &= within(what, 1000, [&](int i) { return (**estimator)(Op{work(i), what}).ns; });
  };
  kernel("gemm bf16", [](int i) {
    Gemm gemm;
    gemm.m = 4096 + 8 * (i % 4096), gemm.n = 4096 + 64 * (i / 4096), gemm.k = 4096;
    gemm.a = gemm.b = gemm.d = gemm.compute = DType::bf16;
    return gemm;
  });
  kernel("pointwise", [](int i) {
    Pointwise work;
    work.elements = 1 << 20, work.elements += 512 * i;
    work.bytes_read = 4 * work.elements, work.bytes_written = 2 * work.elements;
    return work;
  });
  return require && !ok ? 1 : 0;
}
