// The Trace Event Format of chrome://tracing. The JSON is written directly, because traces are
// large.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "maya/report.h"
#include "report/scene.h"

namespace maya::report {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string chrome_trace(const job::Job& job, const simulate::Timeline& timeline) {
  const Scene scene = make_scene(job, timeline);
  std::vector<std::string> texts;
  for (const std::string& text : scene.texts) texts.push_back(quoted(text));
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  auto into = std::back_inserter(out);
  // Tracks of the whole job are process 0, before the ranks.
  auto pid = [](const Track& track) { return track.rank + 1; };

  fmt::format_to(into, R"({{"ph":"M","pid":0,"name":"process_name","args":{{"name":"job"}}}})");
  for (std::size_t i = 0; i < scene.ranks.size(); ++i) {
    fmt::format_to(into,
                   ",\n"
                   R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})",
                   scene.ranks[i] + 1, quoted(scene.rank_names[i]));
    fmt::format_to(
        into,
        ",\n"
        R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})",
        scene.ranks[i] + 1, scene.ranks[i] + 1);
  }
  for (std::size_t i = 0; i < scene.tracks.size(); ++i) {
    const Track& track = scene.tracks[i];
    if (track.kind == Track::Kind::memory) continue;
    fmt::format_to(into,
                   ",\n"
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                   pid(track), i, quoted(track.name));
    fmt::format_to(
        into,
        ",\n"
        R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
        pid(track), i, track.order);
  }
  auto flow = [&](char phase, const Slice& slice, const char* name, std::uint64_t id) {
    fmt::format_to(
        into,
        ",\n"
        R"({{"ph":"{}","pid":{},"tid":{},"ts":{:.3f},"cat":"flow","name":"{}","id":"{:x}"{}}})",
        phase, pid(scene.tracks[slice.track]), slice.track,
        static_cast<double>(slice.start_ns) / 1000, name, id, phase == 'f' ? R"(,"bp":"e")" : "");
  };
  std::map<std::uint64_t, std::vector<const Slice*>> collectives;
  for (const Slice& slice : scene.slices) {
    fmt::format_to(into,
                   ",\n"
                   R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"cat":{})",
                   pid(scene.tracks[slice.track]), slice.track,
                   static_cast<double>(slice.start_ns) / 1000,
                   static_cast<double>(slice.end_ns - slice.start_ns) / 1000, texts[slice.name],
                   texts[slice.category]);
    if (slice.detail) fmt::format_to(into, R"(,"args":{{"op":{}}})", texts[slice.detail]);
    out += '}';
    if (slice.launch_out) flow('s', slice, "launch", slice.launch_out);
    if (slice.launch_in) flow('f', slice, "launch", slice.launch_in);
    if (slice.joined) collectives[slice.joined].push_back(&slice);
  }
  // The parts of a collective on its ranks, in order of arrival.
  for (auto& [id, parts] : collectives) {
    if (parts.size() < 2) continue;
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Slice* a, const Slice* b) { return a->start_ns < b->start_ns; });
    for (std::size_t i = 0; i < parts.size(); ++i)
      flow(i == 0 ? 's' : i + 1 < parts.size() ? 't' : 'f', *parts[i], "collective", id);
  }
  for (const Sample& sample : scene.samples) {
    const Track& track = scene.tracks[sample.track];
    fmt::format_to(into,
                   ",\n"
                   R"({{"ph":"C","pid":{},"ts":{:.3f},"name":{},"args":{{"bytes":{}}}}})",
                   pid(track), static_cast<double>(sample.time_ns) / 1000, quoted(track.name),
                   sample.value);
  }
  out += "\n]}\n";
  return out;
}

}  // namespace maya::report
