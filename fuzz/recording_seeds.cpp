#include <cstring>

#include "maya/trace.h"
#include "mutate.h"
#include "trace/codec.h"
#include "trace/format.h"

namespace maya::fuzz {
namespace {

using namespace trace;

// The units of one block, after the byte that tells the target to wrap them (recording_fuzzer.cpp).
class Units {
 public:
  template <class T>
  Units& define(format::Define what, std::uint64_t index, const T& thing) {
    std::string payload;
    encode(thing, payload);
    return define_bytes(what, index, payload);
  }
  Units& define_bytes(format::Define what, std::uint64_t index, std::string payload) {
    format::DefineUnit head{};
    head.kind = format::define_kind, head.what = what;
    head.bytes = static_cast<std::uint32_t>(payload.size()), head.index = index;
    payload.resize((payload.size() + 15) / 16 * 16);
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head).append(payload);
    return *this;
  }
  template <class T>
  Units& add(const T& unit) {
    bytes_.append(reinterpret_cast<const char*>(&unit), sizeof unit);
    return *this;
  }
  Units& add(Kind kind, std::uint32_t value, std::uint16_t stream = 1, std::uint16_t aux = 0) {
    return add(Record{kind, 0, 0, 1000, stream, aux, value});
  }
  const std::string& done() const { return bytes_; }

 private:
  std::string bytes_ = "\1";
};

}  // namespace

std::vector<std::string> seeds() {
  Identity identity;
  identity.world_size = 2, identity.pid = 7;
  identity.gpu = "h100-sxm", identity.command = "python train.py";
  identity.environment = {{"NCCL_ALGO", "Ring"}};
  Units all;
  all.define(format::Define::identity, 0, identity);
  all.define_bytes(format::Define::text, 0, "step");
  Gemm gemm;
  gemm.m = gemm.n = gemm.k = 1024;
  all.define(format::Define::op, 0, Op{gemm, "gemm"});
  all.define(format::Define::op, 1, Op{Collective{CollectiveKind::all_reduce, 4096}, "reduce"});
  all.define(format::Define::op, 2, Op{PointToPoint{}, "send"});
  all.define(format::Define::communicator, 0, Communicator{42, 0, 2, 0, "world"});
  Graph graph;
  graph.nodes.resize(2);
  graph.nodes[0].record.kind = graph.nodes[1].record.kind = Kind::launch;
  graph.nodes[1].after = {0};
  all.define(format::Define::graph, 0, graph);
  all.add(Kind::stream_create, 0).add(Kind::range_push, 0).add(Kind::launch, 0);
  all.add(Kind::event_record, 1).add(Kind::stream_wait_event, 1, 2);
  all.add(Kind::collective, 1, 2).add(Kind::point_to_point, 2, 2).add(Kind::graph_launch, 0);
  Wide wide;
  wide.y = 1 << 20;
  all.add(wide).add(Kind::allocate, 1).add(wide).add(Kind::release, 1);
  all.add(Kind::device_synchronize, 1).add(Kind::range_pop, 0).add(Kind::step_boundary, 0);
  all.define_bytes(format::Define::warning, 3, "a warning");
  all.define_bytes(format::Define::closed, 0, "");
  Units small;
  small.define(format::Define::identity, 0, identity).add(Kind::launch, 0);
  std::string header(1, '\0');
  format::FileHeader file{};
  std::memcpy(file.magic, format::file_magic, 8);
  file.version = format_version, file.header_bytes = sizeof file;
  header.append(reinterpret_cast<const char*>(&file), sizeof file);
  return {all.done(), small.done(), header};
}

}  // namespace maya::fuzz
