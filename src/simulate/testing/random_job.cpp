#include "simulate/testing/random_job.h"

#include <fmt/format.h>

#include "collate/testing/recording_builder.h"
#include "simulate/testing/plain_machine.h"

namespace maya::testing {
namespace {

using What = Action::What;

int pick(std::mt19937& random, int below) {
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

// The communicators of every rank: all ranks, its pair of neighbours, and the ranks at a stride of
// two.
struct Groups {
  std::vector<std::vector<std::int32_t>> of(int rank, int world) const {
    std::vector<std::int32_t> all, pair, column;
    for (int r = 0; r < world; ++r) {
      all.push_back(r);
      if (r / 2 == rank / 2) pair.push_back(r);
      if (r % 2 == rank % 2) column.push_back(r);
    }
    return {all, pair, column};
  }
};

struct Writer {
  explicit Writer(int rank, int world) : r(rank, world), rank(rank), world(world) {
    auto groups = Groups().of(rank, world);
    r.communicator(1, groups[0]);
    r.communicator(100 + static_cast<std::uint64_t>(rank / 2), groups[1]);
    r.communicator(200 + static_cast<std::uint64_t>(rank % 2), groups[2]);
    // 0: legacy default; 1, 2: blocking; 3, 4: not, one of them of high priority; 5, 6: legacy
    // default and a blocking stream of a second device
    r.flags(trace::legacy).on(0).add(trace::Kind::stream_create, 0, 1000);
    r.create_stream(1, false)
        .create_stream(2, false, -1)
        .create_stream(3)
        .create_stream(4, true, -2);
    r.flags(trace::legacy).on(5).add(trace::Kind::stream_create, 1, 1000);
    r.on(6).add(trace::Kind::stream_create, 1, 1000);
    std::vector<trace::GraphNode> chain{r.node(7), r.node(5, {0}), r.node(9, {1})};
    std::vector<trace::GraphNode> diamond{small(6), small(11, {0}), small(8, {0}),
                                          small(4, {1, 2})};
    trace::GraphNode empty;
    empty.record.kind = trace::Kind::none;
    empty.after = {0, 1};
    std::vector<trace::GraphNode> roots{small(5), small(9), empty, small(3, {2}), r.node(12, {1})};
    trace::GraphNode reduce;
    reduce.record.kind = trace::Kind::collective;
    reduce.record.aux = 1;
    reduce.record.value = r.op({Collective{CollectiveKind::all_reduce, 13}, "collective"});
    reduce.after = {0};
    std::vector<trace::GraphNode> communicating{small(6), reduce, small(10, {0}), small(2, {1, 2})};
    for (auto& nodes : {chain, diamond, roots, communicating}) r.graph(nodes);
  }
  trace::GraphNode small(std::int64_t ns, std::vector<std::uint32_t> after = {}) {
    trace::GraphNode n;
    n.record.kind = trace::Kind::launch;
    n.record.value = r.kernel_op(ns, "k", 30);
    n.after = std::move(after);
    return n;
  }
  std::size_t group_size(int group) const {
    return Groups().of(rank, world)[static_cast<std::size_t>(group)].size();
  }
  int place(int group) const {
    return r_place(Groups().of(rank, world)[static_cast<std::size_t>(group)]);
  }
  int r_place(const std::vector<std::int32_t>& ranks) const {
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }

  void write(const Action& a) {
    using trace::Kind;
    const bool legacy = a.stream == 0 || a.stream == 5;
    int flags = (legacy ? trace::legacy : 0) | (a.resumed ? trace::resumed : 0);
    r.thread(a.thread).on(a.stream).host(a.host);
    auto start = [&]() -> RecordingBuilder& { return r.flags(flags); };
    auto on_stream = legacy ? int{trace::legacy} : 0;
    static constexpr std::uint32_t blocks[] = {0, 20, 50, 100};
    switch (a.what) {
      case What::kernel:
        start().kernel(a.size, "k", blocks[a.choice % 4]);
        break;
      case What::copy: {
        static constexpr CopyDirection directions[] = {CopyDirection::host_to_device,
                                                       CopyDirection::device_to_host,
                                                       CopyDirection::device, CopyDirection::peer};
        r.flags(flags | (a.blocking ? trace::blocking : 0)).copy(a.size, directions[a.choice % 4]);
        break;
      }
      case What::fill:
        start().add(Kind::fill, r.op({Fill{a.size}, "fill"}));
        break;
      case What::host_function:
        start().add(Kind::host_function);
        break;
      case What::record_event:
        start().record(a.event);
        break;
      case What::wait_event:
        start().wait(a.event);
        break;
      case What::sync_event:
        start().add(Kind::event_synchronize, a.event);
        break;
      case What::sync_stream:
        start().sync();
        break;
      case What::sync_device:
        start().add(Kind::device_synchronize, a.choice % 3);  // all, the first, the second
        break;
      case What::release:
        r.flags(0).wide(Kind::release, trace::MemoryKind::device, 64);
        break;
      case What::collective:
        start().collective(a.group, a.size);
        break;
      case What::grouped_collectives:
        start().add(Kind::group_begin);
        for (int i = 0; i < 2; ++i) r.flags(on_stream).collective(a.group, a.size + i);
        r.flags(on_stream).collective(0, a.size, CollectiveKind::all_gather);
        r.add(Kind::group_end);
        break;
      case What::message:
        if (rank == a.from)
          start().send(0, a.to, a.size);
        else if (rank == a.to)
          start().receive(0, a.from, a.size);
        break;
      case What::ring: {
        int n = static_cast<int>(group_size(a.group)), me = place(a.group);
        if (n < 2) break;
        start().add(Kind::group_begin);
        r.flags(on_stream).send(a.group, (me + 1) % n, a.size);
        r.flags(on_stream).receive(a.group, (me + n - 1) % n, a.size);
        r.add(Kind::group_end);
        break;
      }
      case What::exchange: {  // all with all
        int n = static_cast<int>(group_size(a.group)), me = place(a.group);
        start().add(Kind::group_begin);
        for (int peer = 0; peer < n; ++peer) {
          if (peer == me) continue;
          r.flags(on_stream).send(a.group, peer, a.size);
          r.flags(on_stream).receive(a.group, peer, a.size);
        }
        r.add(Kind::group_end);
        break;
      }
      case What::graph:
        start().add(Kind::graph_launch, a.choice % 4);
        break;
      case What::mark:
        if (a.choice % 2 == 0)
          start().add(Kind::mark);
        else  // before the thread waits for another one
          r.flags(trace::sleeps | (a.resumed ? trace::resumed : 0)).add(Kind::host_gap);
        break;
    }
  }

  RecordingBuilder r;
  int rank, world;
};

// In a collective every rank of the group takes part, regardless of Action::ranks.
bool takes_part(const Action& a, int rank) {
  switch (a.what) {
    case What::collective:
    case What::grouped_collectives:
    case What::ring:
    case What::exchange:
    case What::message:
      return true;
    case What::graph:
      if (a.choice % 4 == 3) return true;  // has a collective in it
      [[fallthrough]];
    default:
      return (a.ranks >> rank & 1) != 0;
  }
}

}  // namespace

Script random_script(std::mt19937& random, int length, bool spmd) {
  static constexpr What usual[] = {
      What::kernel,       What::kernel,        What::kernel,
      What::kernel,       What::copy,          What::copy,
      What::fill,         What::host_function, What::record_event,
      What::record_event, What::wait_event,    What::wait_event,
      What::sync_event,   What::sync_stream,   What::sync_device,
      What::release,      What::collective,    What::collective,
      What::message,      What::ring,          What::grouped_collectives,
      What::exchange,     What::graph,         What::graph,
      What::mark};
  Script script;
  script.spmd = spmd;
  script.world = spmd ? 4 * (1 + pick(random, 2)) : 1 + pick(random, 4);
  const int streams = pick(random, 3) == 0 ? 7 : 5;  // sometimes with a second device
  const bool staged = spmd && pick(random, 2) == 0;
  for (int i = 0; i < length; ++i) {
    Action a;
    a.what = usual[static_cast<std::size_t>(pick(random, std::size(usual)))];
    if (spmd && a.what == What::message) a.what = What::ring;
    a.ranks = spmd ? ~0u : random();
    // Two pipeline stages: the halves of the ranks.
    if (staged && pick(random, 3) == 0) a.ranks = script.world == 4 ? 0x3 : 0x0f;
    if (a.what == What::mark) a.ranks = ~0u;  // a mark does not prevent folding, but has host time
    a.thread = static_cast<std::uint8_t>(pick(random, 2));
    a.stream = static_cast<std::uint8_t>(pick(random, streams));
    a.group = static_cast<std::uint8_t>(pick(random, 3));
    a.choice = static_cast<std::uint8_t>(random());
    a.resumed = pick(random, 3) == 0;
    a.blocking = pick(random, 4) == 0;
    a.size = static_cast<std::uint16_t>(1 + pick(random, 40));
    a.host = static_cast<std::uint16_t>(pick(random, 3) == 0 ? pick(random, 60) : pick(random, 6));
    a.event = static_cast<std::uint8_t>(pick(random, 4));
    // A ring through both stages would make every rank a class of its own.
    if (staged && (a.what == What::ring || a.what == What::exchange)) a.group = 1;
    if (a.what == What::message) {
      if (script.world < 2) continue;
      a.from = static_cast<std::uint8_t>(pick(random, script.world));
      a.to =
          static_cast<std::uint8_t>((a.from + 1 + pick(random, script.world - 1)) % script.world);
    }
    script.actions.push_back(a);
  }
  return script;
}

std::vector<trace::Recording> recordings_of(const Script& script) {
  std::vector<trace::Recording> recordings;
  for (int rank = 0; rank < script.world; ++rank) {
    Writer writer(rank, script.world);
    for (const Action& a : script.actions)
      if (takes_part(a, rank)) writer.write(a);
    recordings.push_back(writer.r.done());
  }
  return recordings;
}

std::vector<std::uint32_t> middles_of(const Script& script) {
  Script half = script;
  half.actions.resize(script.actions.size() / 2);
  std::vector<std::uint32_t> middles;
  for (const trace::Recording& r : recordings_of(half))
    middles.push_back(static_cast<std::uint32_t>(r.records.size()));
  return middles;
}

catalog::Cluster random_cluster(std::mt19937& random, int world) {
  catalog::Cluster c = plain_cluster(pick(random, 2) == 0 ? world : (world + 1) / 2);
  c.nodes = 2;
  auto us = [&](int most) { return pick(random, most) * 1e-3; };
  c.host.launch_us = us(10), c.host.memcpy_us = us(10), c.host.event_us = us(4),
  c.host.sync_us = us(5);
  c.host.graph_launch_us = us(20), c.host.graph_node_us = us(4), c.host.malloc_us = us(5),
  c.host.free_us = us(5);
  c.gpu.launch_latency_us = us(5);
  c.gpu.copy_engines = 1 + pick(random, 2);
  c.host.speed = pick(random, 2) == 0 ? 1 : 1.7;
  c.host.launch_queue_depth = pick(random, 2) == 0 ? 1024 : 1 + pick(random, 4);
  c.gpu.memory_gbps = pick(random, 2) * 7;
  c.extra["overlap.communication_slowdown"] = pick(random, 2) * 0.5;
  c.extra["overlap.share_links"] = pick(random, 2);
  c.extra["host.callback_us"] = 0.009;
  return c;
}

std::string text(const Script& script) {
  static constexpr const char* names[] = {
      "kernel",     "copy",       "fill",        "host_function",       "record_event",
      "wait_event", "sync_event", "sync_stream", "sync_device",         "release",
      "collective", "message",    "ring",        "grouped_collectives", "exchange",
      "graph",      "mark"};
  std::string out = fmt::format("{} ranks{}\n", script.world, script.spmd ? ", spmd" : "");
  for (const Action& a : script.actions)
    out += fmt::format(
        "  {} ranks={:x} thread={} stream={} group={} choice={}{}{} size={} host={} event={} "
        "{}→{}\n",
        names[static_cast<std::size_t>(a.what)], a.ranks & ((1u << script.world) - 1), a.thread,
        a.stream, a.group, a.choice % 4, a.resumed ? " resumed" : "", a.blocking ? " blocking" : "",
        a.size, a.host, a.event, a.from, a.to);
  return out;
}

}  // namespace maya::testing
