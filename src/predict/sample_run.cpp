#include "predict/sample_run.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "trace/codec.h"
#include "trace/writer.h"

namespace maya::predict::sample {
namespace {

using trace::Kind;

class Author {
 public:
  Author(std::int32_t rank, const Shape& shape) : shape_(shape) {
    trace::Identity& identity = r_.identity;
    identity.rank = identity.local_rank = identity.device = rank;
    identity.world_size = shape.ranks;
    identity.pid = 1000 + static_cast<std::uint64_t>(rank);
    identity.gpu = "h100-sxm";
    identity.cluster = "dgx-h100:1";
    identity.command = "torchrun train.py";
    identity.memory_capacity = std::uint64_t{79} << 30;
    identity.memory_context = std::uint64_t{500} << 20;
    r_.communicators.push_back({42, rank, shape.ranks, 0, "default_pg"});
    r_.complete = true;
  }

  trace::Recording write() {
    allocate(1, std::int64_t{6} << 30);
    add(Kind::stream_create, 0, communication, 1000, trace::non_blocking);
    if (shape_.train)
      for (int step = 0; step < shape_.steps; ++step) train_step();
    return std::move(r_);
  }

 private:
  static constexpr std::uint16_t compute = 0, communication = 7;

  void add(Kind kind, std::uint32_t value, std::uint16_t stream = compute, std::uint16_t aux = 0,
           std::uint8_t flags = 0) {
    trace::Record record;
    record.kind = kind;
    record.flags = flags;
    record.thread = 1;
    record.host_ns = 6000;
    record.stream = stream;
    record.aux = aux;
    record.value = value;
    r_.records.push_back(record);
  }

  void allocate(std::uint32_t id, std::int64_t bytes) {
    trace::Wide wide;
    wide.thread = 1;
    wide.y = static_cast<std::uint64_t>(bytes);
    r_.records.push_back(std::bit_cast<trace::Record>(wide));
    add(Kind::allocate, id);
  }

  std::uint32_t op(const std::string& name, const Work& work) {
    const auto [found, added] = ops_.emplace(name, static_cast<std::uint32_t>(r_.ops.size()));
    if (added) r_.ops.push_back({work, name, {}});
    return found->second;
  }

  void gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k) {
    Gemm work;
    work.m = m, work.n = n, work.k = k;
    work.a = work.b = work.d = work.compute = DType::bf16;
    add(Kind::launch, op(name, work));
  }

  void attention(Direction direction) {
    Attention work;
    work.batch = shape_.batch;
    work.heads = work.kv_heads = shape_.width / 128;
    work.seq_q = work.seq_k = shape_.sequence;
    work.head_dim = work.head_dim_v = 128;
    work.dtype = DType::bf16;
    work.causal = true;
    work.direction = direction;
    add(Kind::launch, op(direction == Direction::forward ? "flash_fwd" : "flash_bwd", work));
  }

  void train_step() {
    const std::int64_t rows = shape_.batch * shape_.sequence, width = shape_.width;
    Copy input{rows * 8, CopyDirection::host_to_device, true};
    add(Kind::copy, op("tokens", input), compute);
    for (int layer = 0; layer < shape_.layers; ++layer) {
      gemm("qkv", 3 * width, rows, width);
      attention(Direction::forward);
      gemm("out", width, rows, width);
      gemm("up", 4 * width, rows, width);
      gemm("down", width, rows, 4 * width);
    }
    CrossEntropy loss;
    loss.rows = rows, loss.cols = 50304, loss.dtype = DType::bf16, loss.fused = true;
    add(Kind::launch, op("loss", loss));
    loss.direction = Direction::backward;
    add(Kind::launch, op("loss_backward", loss));
    for (int layer = 0; layer < shape_.layers; ++layer) {
      for (int twice = 0; twice < 2; ++twice) {
        gemm("down_grad", 4 * width, rows, width);
        gemm("up_grad", width, rows, 4 * width);
        gemm("out_grad", width, rows, width);
        gemm("qkv_grad", width, rows, 3 * width);
      }
      attention(Direction::backward);
      if (shape_.ranks > 1) {
        add(Kind::event_record, event_, compute);
        add(Kind::stream_wait_event, event_++, communication);
        Collective reduce;
        reduce.bytes = 12 * width * width * 2;
        reduce.dtype = DType::bf16;
        add(Kind::collective, op("ncclAllReduce", reduce), communication, 0);
      }
    }
    if (shape_.ranks > 1) {
      add(Kind::event_record, event_, communication);
      add(Kind::stream_wait_event, event_++, compute);
    }
    OptimizerStep update;
    update.kind = OptimizerKind::adamw;
    update.elements = shape_.layers * 12 * width * width;
    update.bytes_read = 16 * update.elements, update.bytes_written = 12 * update.elements;
    update.fused = true;
    add(Kind::launch, op("fused_adamw", update));
    add(Kind::stream_synchronize, 0, compute);
  }

  Shape shape_;
  trace::Recording r_;
  std::map<std::string, std::uint32_t> ops_;
  std::uint32_t event_{1};
};

}  // namespace

trace::Recording recording(std::int32_t rank, const Shape& shape) {
  return Author(rank, shape).write();
}

void write_recording(const std::string& path, const trace::Recording& recording) {
  std::filesystem::remove(path);  // the writer does not replace an existing recording
  trace::Writer writer;
  if (Status status = writer.open(path); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    std::abort();
  }
  auto define = [&](trace::format::Define what, std::uint64_t index, const auto& thing) {
    std::string bytes;
    trace::encode(thing, bytes);
    writer.define(what, index, bytes);
  };
  define(trace::format::Define::identity, 0, recording.identity);
  for (std::size_t i = 0; i < recording.ops.size(); ++i)
    define(trace::format::Define::op, i, recording.ops[i]);
  for (std::size_t i = 0; i < recording.communicators.size(); ++i)
    define(trace::format::Define::communicator, i, recording.communicators[i]);
  for (std::size_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& record = recording.records[i];
    if (record.kind == Kind::wide) {
      writer.append(std::bit_cast<trace::Wide>(record), recording.records[i + 1]);
      ++i;
    } else {
      writer.append(record);
    }
  }
  // An incomplete recording is left as by a process that was killed: its end is in the tail.
  recording.complete ? writer.close() : writer.abandon();
}

void write_run(const std::string& directory, const Shape& shape, const std::string& cluster) {
  std::ofstream(directory + "/run.toml")
      << "version = 1\ncommand = [\"torchrun\", \"train.py\"]\ncluster = \"" << cluster << "\"\n";
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    write_recording(directory + "/rank-" + std::to_string(rank) + ".maya", recording(rank, shape));
}

}  // namespace maya::predict::sample
