// Measures how fast a recording is read, relative to a linear pass over the same records in memory,
// and that the time is linear in the size. With --require it fails below 500 MB/s.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "cpu_time.h"
#include "maya/trace.h"
#include "trace/codec.h"
#include "trace/format.h"
#include "trace/writer.h"

namespace {

using namespace maya;

double best_of(int times, auto&& what) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    double start = seconds();
    what();
    best = std::min(best, seconds() - start);
  }
  return best;
}

// The records of a training run: launches of a few hundred ops with varying host times, events and
// allocations.
void write(const std::string& path, std::uint32_t records) {
  trace::Writer writer;
  if (Status ok = writer.open(path); !ok) {
    std::fprintf(stderr, "%s\n", ok.error().message.c_str());
    std::exit(1);
  }
  std::string bytes;
  trace::Identity identity;
  identity.pid = 1;
  trace::encode(identity, bytes);
  writer.define(trace::format::Define::identity, 0, bytes);
  for (std::uint32_t i = 0; i < 300; ++i) {
    Gemm gemm;
    gemm.m = 64 * (1 + i), gemm.n = 4096, gemm.k = 1024;
    bytes.clear();
    trace::encode(Op{gemm, "gemm"}, bytes);
    writer.define(trace::format::Define::op, i, bytes);
  }
  std::uint32_t x = 12345;
  for (std::uint32_t i = 0; i < records; ++i) {
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    const std::uint32_t host = 3000 + (x & 1023);
    if (i % 8 == 7)
      writer.append({trace::Kind::event_record, 0, 0, host, 1, 0, i});
    else
      writer.append({trace::Kind::launch, trace::legacy, 0, host, 0, 0, i * 7 % 300});
  }
  writer.close();
}

}  // namespace

int main(int argc, char** argv) {
  const bool require = argc > 1 && std::strcmp(argv[1], "--require") == 0;
  const std::string path = std::filesystem::temp_directory_path() /
                           ("maya-reading-bench-" + std::to_string(getpid()) + ".maya");
  std::printf("%-12s %10s %10s %10s %10s %10s\n", "records", "MB", "on disk", "MB/s", "Mrec/s",
              "/linear");
  double slowest = 1e30, before = 0, growth = 0;
  for (std::uint32_t records : {1u << 20, 1u << 21, 1u << 22}) {
    write(path, records);
    Result<trace::Recording> recording = Error{"not read"};
    double time = best_of(3, [&] { recording = trace::read(path); });
    if (!recording) return std::fprintf(stderr, "%s\n", recording.error().message.c_str()), 1;
    volatile std::uint64_t sink = 0;
    double linear = best_of(5, [&] {
      std::uint64_t sum = 0;
      for (const trace::Record& r : recording->records) sum += r.value + r.host_ns;
      sink = sink + sum;
    });
    double mb = 16e-6 * records,
           disk = 1e-6 * static_cast<double>(std::filesystem::file_size(path));
    slowest = std::min(slowest, mb / time);
    if (before > 0) growth = std::max(growth, time / before);
    before = time;
    std::printf("%-12u %10.1f %10.1f %10.0f %10.1f %9.1fx\n", records, mb, disk, mb / time,
                records / time / 1e6, time / linear);
    std::filesystem::remove(path);
  }
  std::printf(
      "MB of records read a second; time against a linear pass over them in memory; twice "
      "the records take %.2f times as long\n",
      growth);
  if (require && slowest < 500) {
    std::fprintf(stderr, "reading_bench: %.0f MB/s, at least 500 are required\n", slowest);
    return 1;
  }
  return 0;
}
