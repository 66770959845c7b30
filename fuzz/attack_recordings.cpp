// Runs damaged and hostile recordings through the whole program: read, collate, simulate, report.
//
//   attack_recordings [--mutations COUNT] [--first SEED] [--run DIRECTORY] [--bombs]
//   attack_recordings --count-fills DIRECTORY
//
// Half of the mutations damage the bytes of a file. The other half damage the units inside its
// blocks and compute correct checksums again, so that the code after the checks is reached. Bombs
// are small files that expand to a lot of data. Each input must end within 20 seconds and 1 GB, in
// a prediction or in an error of one line without control characters.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "maya/report.h"
#include "predict/predict.h"
#include "predict/sample_run.h"
#include "trace/codec.h"
#include "trace/format.h"
#include "trace/writer.h"

namespace {

namespace fs = std::filesystem;
using namespace maya;
using namespace maya::trace;

constexpr unsigned most_seconds = 20;
constexpr long most_kilobytes = 1 << 20;

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The units of all blocks of a recording.
std::vector<std::string> unpack(const std::string& file) {
  std::vector<std::string> blocks;
  std::size_t at = sizeof(format::FileHeader);
  format::BlockHeader head;
  while (file.size() >= at + sizeof head) {
    std::memcpy(&head, file.data() + at, sizeof head);
    if (head.stored_bytes > file.size() - at - sizeof head) break;
    std::string raw(head.raw_bytes, '\0');
    ZSTD_decompress(raw.data(), raw.size(), file.data() + at + sizeof head, head.stored_bytes);
    blocks.push_back(std::move(raw));
    at += sizeof head + head.stored_bytes;
  }
  return blocks;
}

std::string pack(const std::vector<std::string>& blocks) {
  std::string file;
  format::FileHeader header{};
  std::memcpy(header.magic, format::file_magic, 8);
  header.version = format_version, header.header_bytes = sizeof header;
  file.append(reinterpret_cast<const char*>(&header), sizeof header);
  std::uint64_t sequence = 0;
  for (const std::string& raw : blocks) {
    std::string stored(ZSTD_compressBound(raw.size()), '\0');
    stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 3));
    format::BlockHeader head{format::block_magic, static_cast<std::uint32_t>(stored.size()),
                             static_cast<std::uint32_t>(raw.size()),
                             format::checksum(stored.data(), stored.size()), sequence++};
    file.append(reinterpret_cast<const char*>(&head), sizeof head).append(stored);
  }
  return file;
}

void damage(std::string& bytes, std::mt19937& random, bool units) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  static constexpr std::uint64_t extremes[] = {
      0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull >> 1, ~0ull};
  if (bytes.empty()) return;
  switch (below(7)) {
    case 0:
      bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
      return;
    case 1:
      bytes[below(bytes.size())] = static_cast<char>(random());
      return;
    case 2: {
      const std::size_t width = std::size_t{1} << below(4);
      if (bytes.size() >= width)
        std::memcpy(bytes.data() + below(bytes.size() - width + 1), &extremes[below(11)], width);
      return;
    }
    case 3:
      bytes.resize(units ? below(bytes.size() / 16 + 1) * 16 : below(bytes.size() + 1));
      return;
    case 4:
      bytes.erase(units ? below(bytes.size() / 16) * 16 : below(bytes.size()),
                  units ? 16 * below(8) : below(64));
      return;
    case 5: {
      const std::size_t at = units ? below(bytes.size() / 16) * 16 : below(bytes.size());
      bytes.insert(at, bytes.substr(at, units ? 16 * below(64) : below(64)));
      return;
    }
    default: {
      if (bytes.size() < 32) return;
      const std::size_t count = bytes.size() / 16;
      const std::string unit = bytes.substr(16 * below(count), 16);
      bytes.replace(16 * below(count), 16, unit);
    }
  }
}

struct Verdict {
  enum Kind { predicted, refused, crashed, hung, too_much_memory, unclear } kind{};
  double seconds{};
  long kilobytes{};
  std::string message;
};

// Runs in a child process, so that a crash does not affect the others.
Verdict verdict_of(const std::string& directory) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
    // The limit is for CPU time, because the machine may be busy.
    const rlimit cpu{most_seconds, most_seconds};
    setrlimit(RLIMIT_CPU, &cpu);
    alarm(20 * most_seconds);
    predict::Options options;
    options.keep_spans = true;
    auto outcome = predict::predict_run(directory, options);
    std::string text;
    if (outcome) {
      text = report::summary(outcome->prediction, {}) + report::to_json(outcome->prediction);
      report::html_page(outcome->prediction, outcome->job, outcome->timeline);
      report::perfetto_trace(outcome->job, outcome->timeline);
      report::csv_trace(outcome->job, outcome->timeline);
      report::chakra_groups(outcome->job);
      report::chakra_trace(outcome->job, outcome->timeline, 0);
    } else {
      text = outcome.error().message;
    }
    const bool clear = !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\n';
    });
    if (!outcome) [[maybe_unused]]
      ssize_t ignored = write(ends[1], text.data(), std::min<std::size_t>(text.size(), 4000));
    _exit(!clear ? 3 : outcome ? 0 : 1);
  }
  close(ends[1]);
  Verdict verdict;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
    verdict.message.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  rusage use{};
  wait4(child, &status, 0, &use);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  verdict.seconds = seconds(use.ru_utime) + seconds(use.ru_stime);
  verdict.kilobytes = use.ru_maxrss;
  if (WIFSIGNALED(status))
    verdict.kind = WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU ||
                           (WTERMSIG(status) == SIGKILL && verdict.seconds >= most_seconds - 1)
                       ? Verdict::hung
                       : Verdict::crashed;
  else if (WEXITSTATUS(status) > 1)
    verdict.kind = Verdict::unclear;
  else
    verdict.kind = WEXITSTATUS(status) == 0 ? Verdict::predicted : Verdict::refused;
  if (verdict.kilobytes > most_kilobytes && verdict.kind <= Verdict::refused)
    verdict.kind = Verdict::too_much_memory;
  return verdict;
}

constexpr const char* names[] = {"predicted", "refused",         "crashed",
                                 "hung",      "too much memory", "unclear message"};

class Table {
 public:
  void add(const std::string& what, const Verdict& verdict, const std::string& kept = "") {
    Row& row = rows_[what];
    ++row.count[verdict.kind];
    row.seconds = std::max(row.seconds, verdict.seconds);
    row.kilobytes = std::max(row.kilobytes, verdict.kilobytes);
    if (verdict.kind <= Verdict::refused) return;
    bad_ = true;
    std::printf("  %s: %s %s\n", what.c_str(), names[verdict.kind], kept.c_str());
  }
  int print() const {
    std::printf("%-34s %9s %9s %8s %6s %7s %8s %9s %8s\n", "input", "predicted", "refused",
                "crashes", "hangs", "memory", "unclear", "longest s", "most MB");
    for (const auto& [what, row] : rows_)
      std::printf("%-34s %9d %9d %8d %6d %7d %8d %9.1f %8ld\n", what.c_str(), row.count[0],
                  row.count[1], row.count[2], row.count[3], row.count[4], row.count[5], row.seconds,
                  row.kilobytes / 1024);
    return bad_ ? 1 : 0;
  }

 private:
  struct Row {
    int count[6]{};
    double seconds{};
    long kilobytes{};
  };
  std::map<std::string, Row> rows_;
  bool bad_{};
};

// Makes a recording of one rank from a few definitions and any number of records.
class Forged {
 public:
  explicit Forged(const fs::path& directory) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    write_bytes(directory / "run.toml", "version = 1\ncluster = \"h100-sxm\"\n");
    path_ = (directory / "rank-0.maya").string();
    if (!writer_.open(path_)) std::abort();
    Identity identity;
    identity.world_size = 1, identity.pid = 7, identity.gpu = "h100-sxm";
    identity.memory_capacity = std::uint64_t{80} << 30;
    define(format::Define::identity, 0, identity);
    Gemm gemm;
    gemm.m = gemm.n = gemm.k = 64;
    define(format::Define::op, 0, Op{gemm, "gemm"});
  }
  ~Forged() { writer_.close(); }
  template <class T>
  void define(format::Define what, std::uint64_t index, const T& thing) {
    std::string bytes;
    encode(thing, bytes);
    writer_.define(what, index, bytes);
  }
  void text(format::Define what, std::uint64_t index, const std::string& bytes) {
    writer_.define(what, index, bytes);
  }
  void add(Kind kind, std::uint32_t value, std::uint16_t stream = 0, std::uint16_t thread = 0,
           std::uint16_t aux = 0) {
    writer_.append(Record{kind, 0, thread, 100, stream, aux, value});
  }

 private:
  Writer writer_;
  std::string path_;
};

// Small files that expand to a lot of data, and strings with escape sequences.
std::map<std::string, std::function<void(Forged&)>> bombs() {
  auto graph = [](Forged& file, std::uint32_t nodes, int launches, bool chain) {
    Graph big;
    big.nodes.resize(nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      big.nodes[i].record.kind = Kind::launch;
      if (i > 0) big.nodes[i].after = {chain ? i - 1 : 0};
    }
    file.define(format::Define::graph, 0, big);
    for (int i = 0; i < launches; ++i) file.add(Kind::graph_launch, 0);
  };
  return {
      {"16 million launches",
       [](Forged& file) {
         for (int i = 0; i < 16'000'000; ++i) file.add(Kind::launch, 0);
       }},
      {"4 million launches",
       [](Forged& file) {
         for (int i = 0; i < 4'000'000; ++i) file.add(Kind::launch, 0);
       }},
      {"graph of 100,000 nodes, 1,000 times",
       [=](Forged& file) { graph(file, 100'000, 1000, true); }},
      {"wide graph of 100,000 nodes, 1,000×",
       [=](Forged& file) { graph(file, 100'000, 1000, false); }},
      {"65,536 streams",
       [](Forged& file) {
         for (unsigned i = 0; i < 65536; ++i) {
           file.add(Kind::stream_create, 0, static_cast<std::uint16_t>(i));
           file.add(Kind::launch, 0, static_cast<std::uint16_t>(i));
         }
         file.add(Kind::device_synchronize, 0);
       }},
      {"65,536 streams on the default one",
       [](Forged& file) {
         for (unsigned i = 0; i < 65536; ++i) {
           file.add(Kind::launch, 0, static_cast<std::uint16_t>(i));
           file.add(Kind::launch, 0, 0);
         }
       }},
      {"65,536 threads",
       [](Forged& file) {
         for (unsigned i = 0; i < 65536; ++i)
           file.add(Kind::launch, 0, 0, static_cast<std::uint16_t>(i));
         for (unsigned i = 0; i < 65536; ++i)
           file.add(Kind::device_synchronize, 0, 0, static_cast<std::uint16_t>(i));
       }},
      {"a million events",
       [](Forged& file) {
         for (unsigned i = 1; i < 1'000'000; ++i) {
           file.add(Kind::event_record, i, static_cast<std::uint16_t>(i % 100));
           file.add(Kind::stream_wait_event, i, static_cast<std::uint16_t>(i % 97));
         }
       }},
      {"a million ranges",
       [](Forged& file) {
         file.text(format::Define::text, 0, "step");
         for (int i = 0; i < 1'000'000; ++i) file.add(Kind::range_push, 0);
         file.add(Kind::launch, 0);
       }},
      {"100,000 warnings",
       [](Forged& file) {
         for (int i = 0; i < 100'000; ++i)
           file.text(format::Define::warning, ~0ull, "w" + std::to_string(i));
         for (int i = 0; i < 10; ++i) file.add(Kind::launch, 0);
       }},
      {"text that steers the terminal",
       [](Forged& file) {
         const std::string evil =
             "\033]0;owned\007\033[2J\r\n\xff\xc2\x9b"
             "31m<script>";
         file.text(format::Define::warning, 1, evil);
         file.text(format::Define::unimplemented, 1, evil);
         file.text(format::Define::text, 0, evil);
         file.define(format::Define::op, 1, Op{OtherKernel{}, evil});
         for (int i = 0; i < 20; ++i) {
           file.add(Kind::range_push, 0);
           file.add(Kind::launch, 1);
           file.add(Kind::range_pop, 0);
           file.add(Kind::device_synchronize, 0);
         }
       }},
  };
}

// Counts the fills in the recordings of a run, for tests/attack/run.py: what a killed process left.
int count_fills(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".maya") continue;
    auto recording = read(entry.path().string());
    if (!recording) {
      std::fprintf(stderr, "%s\n", recording.error().message.c_str());
      return 1;
    }
    for (const Record& record : recording->records) count += record.kind == Kind::fill;
  }
  std::printf("%zu\n", count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--count-fills") == 0) return count_fills(argv[2]);
  unsigned mutations = 200, first = 0;
  std::string run;
  bool with_bombs = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--bombs") with_bombs = true;
    if (i + 1 < argc && word == "--mutations")
      mutations = static_cast<unsigned>(std::atoi(argv[++i]));
    if (i + 1 < argc && word == "--first") first = static_cast<unsigned>(std::atoi(argv[++i]));
    if (i + 1 < argc && word == "--run") run = argv[++i];
  }
  const fs::path folder = fs::temp_directory_path() / ("maya-attack-" + std::to_string(getpid()));
  fs::create_directories(folder / "run");
  if (run.empty()) {
    run = (folder / "sample").string();
    fs::create_directories(run);
    predict::sample::Shape shape;
    shape.ranks = 2, shape.steps = 4, shape.layers = 2;
    predict::sample::write_run(run, shape);
  }
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run))
    if (entry.is_regular_file() &&
        entry.path().filename().string().find(".maya") != std::string::npos)
      files[entry.path().filename().string()] = read_bytes(entry.path());
  Table table;
  for (unsigned seed = first; seed < first + mutations; ++seed) {
    std::mt19937 random(seed);
    const bool corrected = seed % 2 == 0;
    for (const auto& [name, bytes] : files) write_bytes(folder / "run" / name, bytes);
    fs::copy_file(fs::path(run) / "run.toml", folder / "run" / "run.toml",
                  fs::copy_options::overwrite_existing);
    auto chosen = std::next(files.begin(), static_cast<long>(random() % files.size()));
    std::string bytes = chosen->second;
    if (corrected && chosen->first.ends_with(".maya")) {
      std::vector<std::string> blocks = unpack(bytes);
      if (!blocks.empty()) {
        std::string& block = blocks[random() % blocks.size()];
        for (unsigned n = 1 + random() % 6; n > 0; --n) damage(block, random, true);
        block.resize(block.size() / 16 * 16);
      }
      bytes = pack(blocks);
    } else {
      for (unsigned n = 1 + random() % 4; n > 0; --n) damage(bytes, random, false);
    }
    write_bytes(folder / "run" / chosen->first, bytes);
    const Verdict verdict = verdict_of((folder / "run").string());
    table.add(corrected ? "mutations, checksums corrected" : "mutations of the bytes", verdict,
              "(seed " + std::to_string(seed) + ")");
  }
  if (with_bombs)
    for (const auto& [what, write] : bombs()) {
      const fs::path place = folder / "bomb";
      {
        Forged file(place);
        write(file);
      }
      const Verdict verdict = verdict_of(place.string());
      table.add(what, verdict, verdict.message);
      std::printf("  %s: %s in %.1f s, %ld MB; %ld KB%s%s\n", what.c_str(), names[verdict.kind],
                  verdict.seconds, verdict.kilobytes / 1024,
                  static_cast<long>(fs::file_size(place / "rank-0.maya") / 1024),
                  verdict.message.empty() ? "" : ": ", verdict.message.c_str());
      std::fflush(stdout);
    }
  fs::remove_all(folder);
  return table.print();
}
