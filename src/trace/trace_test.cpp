#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "maya/trace.h"
#include "trace/codec.h"
#include "trace/writer.h"

namespace maya::trace {
namespace {

class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "maya-trace-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/rank-0.maya";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static void define_op(Writer& writer, std::uint64_t index, const Op& op) {
    std::string bytes;
    encode(op, bytes);
    writer.define(format::Define::op, index, bytes);
  }
  static void identify(Writer& writer) {
    Identity identity;
    identity.rank = 3, identity.world_size = 8, identity.pid = 77, identity.gpu = "h100-sxm";
    identity.environment = {{"NCCL_ALGO", "Ring"}};
    std::string bytes;
    encode(identity, bytes);
    writer.define(format::Define::identity, 0, bytes);
  }
  // Never destroyed, as in a process that crashes.
  Writer* begin_in_child() const {
    auto* writer = new Writer;
    if (!writer->open(path_)) _exit(1);
    identify(*writer);
    define_op(*writer, 0, Op{Fill{1}, "f", {}});
    return writer;
  }
  static Record launch(std::uint32_t op, std::uint32_t host_ns = 5) {
    return {Kind::launch, 0, 1, host_ns, 2, 0, op};
  }

  std::string directory_, path_;
};

TEST_F(TraceTest, ReadReturnsWhatWasWritten) {
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    Gemm gemm{.m = 4096,
              .n = 2048,
              .k = 1024,
              .batch = 2,
              .a = DType::bf16,
              .epilogue = Epilogue::bias_gelu};
    define_op(writer, 0, Op{gemm, "cublasLtMatmul", {}});
    define_op(
        writer, 1,
        Op{Solver{.m = 5, .n = 6, .flop_factor = 1.5}, "potrf", {{1, 2, 3}, {4, 5, 6}, 7, 8}});
    writer.append(launch(0));
    writer.append(Wide{.x = 2, .y = 1ULL << 40}, Record{Kind::allocate, 0, 0, 1, 0, 0, 9});
    writer.append(launch(1));
    writer.close();
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tail"));
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->complete);
  EXPECT_EQ(recording->identity.rank, 3);
  EXPECT_EQ(recording->identity.environment[0].second, "Ring");
  ASSERT_EQ(recording->ops.size(), 2u);
  const auto& gemm = std::get<Gemm>(recording->ops[0].work);
  EXPECT_EQ(gemm.m, 4096);
  EXPECT_EQ(gemm.a, DType::bf16);
  EXPECT_EQ(gemm.epilogue, Epilogue::bias_gelu);
  EXPECT_EQ(std::get<Solver>(recording->ops[1].work).flop_factor, 1.5);
  EXPECT_EQ(recording->ops[1].geometry.block[2], 6u);
  ASSERT_EQ(recording->records.size(), 4u);
  Wide wide;
  std::memcpy(&wide, &recording->records[1], sizeof wide);
  EXPECT_EQ(wide.y, 1ULL << 40);
}

TEST_F(TraceTest, ConcurrentWritersLoseNoRecords) {
  constexpr int per_thread = 60000;  // several blocks
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    define_op(writer, 0, Op{Fill{1}, "f", {}});
    std::vector<std::thread> threads;
    for (std::uint16_t t = 0; t < 4; ++t)
      threads.emplace_back([&writer, t] {
        for (std::uint32_t i = 0; i < per_thread; ++i)
          writer.append(Record{Kind::launch, 0, t, i, 0, 0, 0});
      });
    for (auto& thread : threads) thread.join();
    writer.close();
  }
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  std::uint32_t next[4] = {};
  for (const auto& r : recording->records) EXPECT_EQ(r.host_ns, next[r.thread]++);
  for (auto n : next) EXPECT_EQ(n, static_cast<std::uint32_t>(per_thread));
}

TEST_F(TraceTest, KilledProcessKeepsEveryRecord) {
  constexpr std::uint32_t count = 100000;
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Writer* writer = begin_in_child();
    for (std::uint32_t i = 0; i < count; ++i) writer->append(launch(0, i));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_FALSE(recording->complete);
  ASSERT_EQ(recording->records.size(), count);
  EXPECT_EQ(recording->records.back().host_ns, count - 1);
}

TEST_F(TraceTest, FullDiskStopsTheRecordingButNotTheProgram) {
  constexpr std::uint32_t count = 1000000;
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Writer* writer = begin_in_child();
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{600000, 600000};  // limits the recording; the tail is already allocated
    setrlimit(RLIMIT_FSIZE, &limit);
    std::mt19937 random(1);  // incompressible data
    for (std::uint32_t i = 0; i < count; ++i) writer->append(launch(0, random()));
    define_op(*writer, 1, Op{Fill{2}, "g", {}});
    _exit(writer->failure().empty() ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_FALSE(recording->complete);
  EXPECT_GT(recording->records.size(), 65000u);  // one block and the full tail
  EXPECT_LT(recording->records.size(), count);
}

TEST_F(TraceTest, AGraphLargerThanABlockIsKept) {
  constexpr std::uint32_t nodes = 200000;
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    define_op(writer, 0, Op{Fill{1}, "f", {}});
    writer.append(launch(0, 1));
    Graph graph;
    for (std::uint32_t i = 0; i < nodes; ++i) {
      graph.nodes.push_back({launch(0, i), {}});
      if (i > 0) graph.nodes.back().after = {i - 1};
    }
    std::string bytes;
    encode(graph, bytes);
    ASSERT_GT(bytes.size(), format::tail_bytes);
    writer.define(format::Define::graph, 0, bytes);
    writer.append(Record{Kind::graph_launch, 0, 0, 2, 0, 0, 0});
    writer.close();
  }
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(recording->complete);
  ASSERT_EQ(recording->graphs.size(), 1u);
  ASSERT_EQ(recording->graphs[0].nodes.size(), nodes);
  EXPECT_EQ(recording->graphs[0].nodes.back().after, std::vector<std::uint32_t>{nodes - 2});
  ASSERT_EQ(recording->records.size(), 2u);
  EXPECT_EQ(recording->records[1].kind, Kind::graph_launch);
}

TEST_F(TraceTest, AStaleTailIsNotReadTwice) {
  Writer writer;
  ASSERT_TRUE(writer.open(path_));
  identify(writer);
  define_op(writer, 0, Op{Fill{1}, "f", {}});
  for (int i = 0; i < 1000; ++i) writer.append(launch(0));
  std::filesystem::copy(path_ + ".tail", directory_ + "/kept");
  writer.close();
  std::filesystem::copy(directory_ + "/kept",
                        path_ + ".tail");  // as after a crash between the two writes
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->records.size(), 1000u);
}

TEST_F(TraceTest, DamagedRecordingIsReportedAsDamaged) {
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    define_op(writer, 0, Op{Gemm{.m = 1, .n = 2, .k = 3}, "gemm", {}});
    for (int i = 0; i < 3000; ++i) writer.append(launch(0, static_cast<std::uint32_t>(i * 7919)));
    writer.close();
  }
  std::ifstream in(path_, std::ios::binary);
  std::string good((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(1);
  int rejected = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    if (round % 2 == 0)
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    else
      bad.resize(random() % bad.size());
    std::string path = directory_ + "/bad.maya";
    std::ofstream(path, std::ios::binary) << bad;
    auto recording = read(path);
    if (!recording) {
      ++rejected;
      EXPECT_NE(recording.error().message.find("bad.maya"), std::string::npos);
    }
  }
  EXPECT_GT(rejected, 300);
}

TEST_F(TraceTest, ANewerFormatAsksForAnUpdate) {
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
  }
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  std::uint32_t version = format_version + 1;
  file.seekp(8).write(reinterpret_cast<char*>(&version), 4);
  file.close();
  auto recording = read(path_);
  ASSERT_FALSE(recording);
  EXPECT_NE(recording.error().message.find("newer Maya"), std::string::npos);
}

TEST_F(TraceTest, HostileDefinitionsAreRejected) {
  auto refused = [&](format::Define what, std::uint64_t index, const std::string& payload) {
    std::filesystem::remove(path_);
    {
      Writer writer;
      EXPECT_TRUE(writer.open(path_));
      identify(writer);
      writer.define(what, index, payload);
      writer.close();
    }
    return !read(path_);
  };
  EXPECT_TRUE(refused(format::Define::op, 0, "\xff\xff\xff\xff\xff"));
  EXPECT_TRUE(refused(format::Define::op, 5, ""));
  std::string graph;
  Encoder encoder(graph);
  encoder.unsigned_integer(1ULL << 60);
  EXPECT_TRUE(refused(format::Define::graph, 0, graph));
  std::string communicator;
  encode(Communicator{.id = 1, .rank = 9, .size = 4}, communicator);
  EXPECT_TRUE(refused(format::Define::communicator, 0, communicator));
  Identity identity;
  identity.memory_context = 1ULL << 63;  // would make the peak negative
  std::string context;
  encode(identity, context);
  EXPECT_TRUE(refused(format::Define::identity, 0, context));
}

TEST_F(TraceTest, DamagedTailIsDetected) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Writer* writer = begin_in_child();
    for (std::uint32_t i = 0; i < 5000; ++i) writer->append(launch(0, i));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(read(path_));
  const std::string tail = path_ + ".tail";
  std::string whole;
  {
    std::ifstream in(tail, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::mt19937 random(1);
  int unseen = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    damaged[format::tail_begin + random() % (5000 * sizeof(Record))] ^=
        static_cast<char>(1 + random() % 255);
    std::ofstream(tail, std::ios::binary) << damaged;
    unseen += read(path_).operator bool();
  }
  // Only the records after the last full piece have no checksum: 16 of 5,000.
  EXPECT_LE(unseen, 3);
}

TEST_F(TraceTest, AWriterRemovesOnlyItsOwnFiles) {
  const std::string tail = path_ + ".tail";
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    // Another run has taken over the directory.
    std::filesystem::remove(tail);
    std::filesystem::remove(path_);
    std::ofstream(tail) << "theirs";
    std::ofstream(path_) << "theirs too";
    EXPECT_FALSE(writer.rename(directory_ + "/rank-9.maya"));
  }
  EXPECT_TRUE(std::filesystem::exists(tail));
  EXPECT_TRUE(std::filesystem::exists(path_));
  Writer second;
  EXPECT_FALSE(second.open(path_)) << "a recording that is there is never written to";
  EXPECT_TRUE(std::filesystem::exists(tail));
}

TEST_F(TraceTest, SmallFilesThatExpandTooMuchAreRejected) {
  auto written = [&](auto&& fill) {
    std::filesystem::remove(path_);
    Writer writer;
    if (!writer.open(path_)) std::abort();
    identify(writer);
    define_op(writer, 0, Op{Fill{1}, "f", {}});
    fill(writer);
    writer.close();
    auto recording = read(path_);
    return recording ? std::string() : recording.error().message;
  };
  EXPECT_NE(written([](Writer& writer) {
              for (int i = 0; i < 6'000'000; ++i) writer.append(launch(0));
            }).find("times its size"),
            std::string::npos);
  EXPECT_NE(written([](Writer& writer) {
              Graph graph;
              graph.nodes.resize(20'000);
              for (auto& node : graph.nodes) node.record = launch(0);
              std::string bytes;
              encode(graph, bytes);
              writer.define(format::Define::graph, 0, bytes);
              for (int i = 0; i < 1000; ++i)
                writer.append(Record{Kind::graph_launch, 0, 0, 5, 0, 0, 0});
            }).find("unfold to"),
            std::string::npos);
  EXPECT_NE(written([](Writer& writer) {
              for (unsigned i = 0; i < 65536; ++i) {
                writer.append(Record{Kind::launch, 0, 0, 5, static_cast<std::uint16_t>(i), 0, 0});
                writer.append(Record{Kind::device_synchronize, 0, 0, 5, 0, 0, 0});
              }
            }).find("streams"),
            std::string::npos);
}

TEST_F(TraceTest, ControlCharactersInStringsAreEscaped) {
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    writer.define(format::Define::text, 0, "\033[2Jstep");
    writer.define(format::Define::warning, 1, "\007bell");
    define_op(writer, 0, Op{Fill{1}, "\033]0;x\007", {}});
    writer.append(launch(0));
  }
  auto recording = read(path_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->strings[0], "\\e[2Jstep");
  EXPECT_EQ(recording->warnings[0].name, "\\x07bell");
  EXPECT_EQ(recording->ops[0].name, "\\e]0;x\\x07");
}

TEST_F(TraceTest, OpenInAMissingDirectoryReportsTheReason) {
  Writer writer;
  auto status = writer.open(directory_ + "/missing/rank-0.maya");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("No such file"), std::string::npos);
  writer.append(launch(0));  // ignored
  EXPECT_FALSE(read(directory_ + "/nothing.maya"));
}

TEST_F(TraceTest, RecordingThatIsBeingWrittenIsRead) {
  constexpr std::uint32_t records = 3'000'000;
  std::atomic<bool> done{};
  std::jthread program([&] {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    define_op(writer, 0, Op{Fill{1}, "f", {}});
    // Definitions among the records: a tail that is taken for another one lacks some of them.
    std::minstd_rand random;  // equal times would compress better than a recording may
    for (std::uint32_t i = 0; i < records; ++i) {
      if (i % 5000 == 4999) define_op(writer, i / 5000 + 1, Op{Fill{i}, "f", {}});
      writer.append(launch(i / 5000, random() % 100'000));
    }
    done = true;
  });
  std::size_t last = 0, read_while_written = 0;
  while (!done) {
    const auto recording = read(path_);
    if (!recording) {
      const std::string& why = recording.error().message;  // nothing has been written yet
      ASSERT_TRUE(why.find("cannot read") != std::string::npos ||
                  why.find("too short") != std::string::npos ||
                  why.find("is empty") != std::string::npos)
          << why;
      continue;
    }
    for (std::size_t i = last; i < recording->records.size(); ++i)
      ASSERT_EQ(recording->records[i].value, i / 5000) << i;
    read_while_written += recording->records.size() > last;
    last = recording->records.size();
  }
  program.join();
  EXPECT_GT(read_while_written, 1u);
  EXPECT_EQ(read(path_)->records.size(), records);
}

TEST_F(TraceTest, ReadingStopsWhenEnoughIsRead) {
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path_));
    identify(writer);
    define_op(writer, 0, Op{Fill{1}, "f", {}});
    for (int i = 0; i < 500'000; ++i) writer.append(launch(0));
  }
  const auto some = read(path_, 100'000);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_GE(some->records.size(), 100'000u);
  EXPECT_LT(some->records.size(), 300'000u);
  EXPECT_EQ(some->identity.world_size, 8);
}

}  // namespace
}  // namespace maya::trace
