// Decodes the traces and checks what a viewer would show.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "maya/report.h"
#include "report/sample_job.h"
#include "report/scene.h"

namespace maya::report {
namespace {

using protozero::pbf_reader;

struct Event {
  std::uint64_t track{}, name{};
  std::int64_t time{}, value{};
  int type{};
  std::vector<std::uint64_t> flows, ends;
};

// The tracks, names and events of a decoded trace.
struct Decoded {
  std::map<std::uint64_t, std::string> track_name;
  std::map<std::uint64_t, std::uint64_t> parent;
  std::map<std::uint64_t, std::pair<int, std::string>> process;  // uuid → pid, name
  std::map<std::uint64_t, int> thread_pid;
  std::map<std::uint64_t, std::string> names;
  std::vector<Event> events;

  int pid_of(std::uint64_t track) const {
    if (auto thread = thread_pid.find(track); thread != thread_pid.end()) return thread->second;
    auto up = parent.find(track);
    return up == parent.end() ? 0 : process.at(up->second).first;
  }
};

void read_descriptor(pbf_reader message, Decoded& decoded) {
  std::uint64_t uuid = 0;
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        uuid = message.get_uint64();
        break;
      case 2:
        decoded.track_name[uuid] = message.get_string();
        break;
      case 3: {
        pbf_reader process = message.get_message();
        auto& [pid, name] = decoded.process[uuid];
        while (process.next()) {
          if (process.tag() == 1)
            pid = process.get_int32();
          else if (process.tag() == 6)
            name = process.get_string();
          else
            process.skip();
        }
        break;
      }
      case 4: {
        pbf_reader thread = message.get_message();
        while (thread.next()) {
          if (thread.tag() == 1)
            decoded.thread_pid[uuid] = thread.get_int32();
          else
            thread.skip();
        }
        break;
      }
      case 5:
        decoded.parent[uuid] = message.get_uint64();
        break;
      default:
        message.skip();
    }
  }
}

Event read_event(pbf_reader message) {
  Event event;
  while (message.next()) {
    switch (message.tag()) {
      case 9:
        event.type = message.get_enum();
        break;
      case 10:
        event.name = message.get_uint64();
        break;
      case 11:
        event.track = message.get_uint64();
        break;
      case 30:
        event.value = message.get_int64();
        break;
      case 47:
        event.flows.push_back(message.get_fixed64());
        break;
      case 48:
        event.ends.push_back(message.get_fixed64());
        break;
      default:
        message.skip();
    }
  }
  return event;
}

Decoded decode(const std::string& bytes) {
  Decoded decoded;
  pbf_reader trace(bytes);
  while (trace.next(1)) {
    pbf_reader packet = trace.get_message();
    std::int64_t time = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          time = static_cast<std::int64_t>(packet.get_uint64());
          break;
        case 11: {
          Event event = read_event(packet.get_message());
          event.time = time;
          decoded.events.push_back(event);
          break;
        }
        case 12: {
          pbf_reader interned = packet.get_message();
          while (interned.next()) {
            if (interned.tag() != 2) {
              interned.skip();
              continue;
            }
            pbf_reader entry = interned.get_message();
            std::uint64_t iid = 0;
            while (entry.next()) {
              if (entry.tag() == 1)
                iid = entry.get_uint64();
              else
                decoded.names[iid] = entry.get_string();
            }
          }
          break;
        }
        case 60:
          read_descriptor(packet.get_message(), decoded);
          break;
        default:
          packet.skip();
      }
    }
  }
  return decoded;
}

TEST(Perfetto, RanksAreProcessesAndSlicesNest) {
  const Decoded trace = decode(perfetto_trace(sample::job(), sample::timeline()));
  ASSERT_EQ(trace.process.size(), 4U);
  std::set<std::string> names;
  for (const auto& [uuid, process] : trace.process) names.insert(process.second);
  EXPECT_EQ(names, (std::set<std::string>{"rank 0", "rank 1", "rank 2", "rank 3"}));

  std::map<std::uint64_t, int> depth;
  std::map<std::uint64_t, std::int64_t> last;
  std::map<int, int> gemms;  // by process
  for (const Event& event : trace.events) {
    ASSERT_TRUE(trace.track_name.count(event.track)) << "an event on no track";
    if (event.type == 4) continue;
    EXPECT_GE(event.time, last[event.track]);
    last[event.track] = event.time;
    depth[event.track] += event.type == 1 ? 1 : -1;
    EXPECT_TRUE(depth[event.track] == 0 || depth[event.track] == 1);
    if (event.type == 1 && trace.names.at(event.name).rfind("gemm 4096x16384x4096 bf16", 0) == 0)
      ++gemms[trace.pid_of(event.track)];
  }
  for (const auto& [track, open] : depth) EXPECT_EQ(open, 0);
  for (int pid = 1; pid <= 4; ++pid) EXPECT_EQ(gemms[pid], 2 * 3);
}

TEST(Perfetto, EveryKernelHasAnArrowFromItsLaunch) {
  const Decoded trace = decode(perfetto_trace(sample::job(), sample::timeline()));
  std::map<std::uint64_t, const Event*> launches;
  for (const Event& event : trace.events)
    for (std::uint64_t flow : event.flows)
      if (flow >> 63 == 0) {
        EXPECT_TRUE(launches.emplace(flow, &event).second) << "flow used twice";
      }
  int arrows = 0;
  for (const Event& event : trace.events)
    for (std::uint64_t flow : event.ends) {
      ASSERT_TRUE(launches.count(flow));
      EXPECT_EQ(trace.pid_of(launches[flow]->track), trace.pid_of(event.track));
      EXPECT_LE(launches[flow]->time, event.time);
      ++arrows;
    }
  EXPECT_EQ(arrows, 4 * 3 * 8);  // ranks, steps, ops
}

TEST(Perfetto, CollectiveIsConnectedAcrossItsRanks) {
  const Decoded trace = decode(perfetto_trace(sample::job(), sample::timeline()));
  std::map<std::uint64_t, std::set<int>> members;
  for (const Event& event : trace.events)
    for (std::uint64_t flow : event.flows)
      if (flow >> 63) members[flow].insert(trace.pid_of(event.track));
  ASSERT_EQ(members.size(), 3U);  // one all-reduce a step
  for (const auto& [flow, pids] : members) EXPECT_EQ(pids, (std::set<int>{1, 2, 3, 4}));
}

TEST(Perfetto, MemoryCounterReachesThePeak) {
  const Decoded trace = decode(perfetto_trace(sample::job(), sample::timeline()));
  std::map<int, std::int64_t> final_value;
  for (const Event& event : trace.events)
    if (event.type == 4) final_value[trace.pid_of(event.track)] = event.value;
  ASSERT_EQ(final_value.size(), 4U);
  EXPECT_EQ(final_value[1], std::int64_t{40} << 30);
  EXPECT_EQ(final_value[4], std::int64_t{60} << 30);
}

TEST(Scene, LargeJobsShowOneRankOfEachClass) {
  SceneOptions few;
  few.most_ranks = 2;
  const Scene scene = make_scene(sample::job(), sample::timeline(), few);
  EXPECT_EQ(scene.rank_names, (std::vector<std::string>{"ranks 0-2", "rank 3"}));
}

TEST(Scene, OverlappingKernelsOfAGraphGetSeparateLanes) {
  std::vector<simulate::Span> spans(3);
  spans[0].end_ns = 10;
  spans[1].start_ns = 5, spans[1].end_ns = 15;
  spans[2].start_ns = 10, spans[2].end_ns = 20;
  EXPECT_EQ(lanes({&spans[0], &spans[1], &spans[2]}), (std::vector<std::uint32_t>{0, 1, 0}));
}

TEST(Chrome, IsValidJsonWithTheSameSlices) {
  const auto json = nlohmann::json::parse(chrome_trace(sample::job(), sample::timeline()));
  int gemms = 0, starts = 0, ends = 0;
  for (const auto& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    starts += phase == "s", ends += phase == "f";
    if (phase == "X" && event.at("cat") == "gemm") {
      ++gemms;
      EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 3000);
    }
  }
  EXPECT_EQ(gemms, 4 * 2 * 3);
  EXPECT_EQ(starts, ends);
  // The four members of a collective are one chain of arrows: start, two steps, end.
  std::map<std::string, std::string> chains;
  for (const auto& event : json.at("traceEvents"))
    if (event.value("name", "") == "collective" && event.value("cat", "") == "flow")
      chains[event.at("id")] += event.at("ph").get<std::string>();
  EXPECT_FALSE(chains.empty());
  for (const auto& [id, chain] : chains) EXPECT_EQ(chain, "sttf") << id;
}

TEST(Csv, HasOneLinePerSpan) {
  const std::string text = csv_trace(sample::job(), sample::timeline());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 3 * 8);
  EXPECT_NE(text.find("\n0-2,7,1,"), std::string::npos);
  EXPECT_NE(text.find("kind=all_reduce"), std::string::npos);
  EXPECT_NE(text.find(",collective,ncclAllReduce,"), std::string::npos);
}

TEST(Html, KernelNamesAreEscaped) {
  Prediction p = sample::prediction();
  p.ops[0].name = "</script><b>kernel<!--";
  const std::string page = html_page(p, sample::job(), sample::timeline());
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>"));
  for (const char* outside : {"http://", "https://", "src=", "@import", "<link"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  const std::size_t begin = page.find("const data = ") + 13;
  const auto data = nlohmann::json::parse(page.substr(begin, page.find(";\n", begin) - begin));
  EXPECT_EQ(data.at("prediction").at("ops").at(0).at("name"), p.ops[0].name);
  EXPECT_EQ(data.at("timeline").at("step_us"), 10'000);
  ASSERT_EQ(data.at("timeline").at("ranks").size(), 2U);
}

struct Node {
  std::uint64_t id{}, duration{};
  int type{};
  std::vector<std::uint64_t> deps;
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> strings;
};

std::vector<Node> decode_chakra(const std::string& bytes) {
  std::vector<Node> nodes;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  bool first = true;
  while (at < end) {
    const std::uint64_t size = protozero::decode_varint(&at, end);
    EXPECT_LE(size, static_cast<std::uint64_t>(end - at));
    pbf_reader message(at, size);
    at += size;
    if (first) {  // GlobalMetadata
      first = false;
      continue;
    }
    Node node;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          node.id = message.get_uint64();
          break;
        case 3:
          node.type = message.get_enum();
          break;
        case 5:
          for (std::uint64_t dep : message.get_packed_uint64()) node.deps.push_back(dep);
          break;
        case 7:
          node.duration = message.get_uint64();
          break;
        case 10: {
          pbf_reader attribute = message.get_message();
          std::string name;
          while (attribute.next()) {
            switch (attribute.tag()) {
              case 1:
                name = attribute.get_string();
                break;
              case 7:
                node.numbers[name] = attribute.get_int32();
                break;
              case 9:
                node.numbers[name] = attribute.get_int64();
                break;
              case 13:
                node.numbers[name] = static_cast<std::int64_t>(attribute.get_uint64());
                break;
              case 27:
                node.numbers[name] = attribute.get_bool();
                break;
              case 29:
                node.strings[name] = attribute.get_string();
                break;
              default:
                attribute.skip();
            }
          }
          break;
        }
        default:
          message.skip();
      }
    }
    nodes.push_back(node);
  }
  return nodes;
}

TEST(Chakra, HasMeasuredStepsWithDependencies) {
  const std::vector<Node> nodes = decode_chakra(chakra_trace(sample::job(), sample::timeline(), 3));
  ASSERT_EQ(nodes.size(), 2U * 8 * 2);  // steps, ops, a call and its work
  int collectives = 0, gemms = 0;
  std::set<std::uint64_t> seen;
  for (const Node& node : nodes) {
    for (std::uint64_t dep : node.deps)
      EXPECT_TRUE(seen.count(dep)) << "a dependency that comes later";
    EXPECT_TRUE(seen.insert(node.id).second);
    if (node.type == 7) {
      ++collectives;
      EXPECT_EQ(node.numbers.at("comm_type"), 0);
      EXPECT_EQ(node.numbers.at("comm_size"), 256 << 20);
      EXPECT_EQ(node.strings.at("pg_name"), "0");  // all ranks
      EXPECT_EQ(node.duration, 4000U);
    } else if (node.numbers.count("num_ops") && node.duration == 3000) {
      ++gemms;
      EXPECT_EQ(node.numbers.at("num_ops"), 2LL * 4096 * 16384 * 4096);
    }
  }
  EXPECT_EQ(collectives, 2);
  EXPECT_EQ(gemms, 4);
  EXPECT_TRUE(nlohmann::json::parse(chakra_groups(sample::job())).empty());
}

TEST(Chakra, GroupsOfSomeRanksAreNumbered) {
  job::Job job = sample::job();
  job.communicators[0].ranks = {3, 2, 1, 0};  // another order is another group
  const std::vector<Node> nodes = decode_chakra(chakra_trace(job, sample::timeline(), 3));
  for (const Node& node : nodes)
    if (node.type == 7) {
      EXPECT_EQ(node.strings.at("pg_name"), "1");
    }
  EXPECT_EQ(nlohmann::json::parse(chakra_groups(job)).at("1"), (std::vector<int>{3, 2, 1, 0}));
}

TEST(Chakra, StreamsWaitForTheirEvents) {
  job::Job job = sample::job();
  trace::Recording& recording = job.classes[1].recording;
  const std::uint32_t begin = job.classes[1].step_begin[1];
  // The all-reduce of stream 7 waits for the kernel in front of it: record, wait.
  trace::Record record;
  record.kind = trace::Kind::event_record;
  record.value = 5;
  trace::Record wait = record;
  wait.kind = trace::Kind::stream_wait_event;
  wait.stream = 7;
  recording.records.insert(recording.records.begin() + begin + 5, {record, wait});
  job.classes[1].step_begin[2] += 2, job.classes[1].step_begin[3] += 2;
  const std::vector<Node> nodes = decode_chakra(chakra_trace(job, sample::timeline(), 3));
  // Nodes of the step: calls are even, work is odd; the kernel is 9, the all-reduce's call 10,
  // itself 11.
  EXPECT_EQ(nodes[11].type, 7);
  EXPECT_EQ(nodes[11].deps, (std::vector<std::uint64_t>{9, 10}));
}

}  // namespace
}  // namespace maya::report
