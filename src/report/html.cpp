// report.html: the page is one file of markup, style and script with the data of the run put in as
// JSON. It asks nothing of the network.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "maya/report.h"
#include "report/format.h"
#include "report/page.h"
#include "report/scene.h"

namespace maya::report {
namespace {

using Json = nlohmann::json;

// One measured step of each class: [track name, [[start us, duration us, text, category] …]].
Json timeline_json(const job::Job& job, const simulate::Timeline& timeline) {
  constexpr std::size_t most_slices = 60'000;
  Json result = Json::object();
  result["step_us"] = 0;
  result["ranks"] = Json::array();
  const simulate::Step* shown = nullptr;
  for (const simulate::Step& step : timeline.steps)
    if (step.measured && !shown) shown = &step;
  if (!shown) return result;
  result["step_us"] = static_cast<double>(shown->end_ns - shown->start_ns) / 1000;

  SceneOptions options;
  options.most_ranks = 0;  // one rank of each class
  const Scene scene = make_scene(job, timeline, options);
  std::map<std::uint32_t, Json> slices;  // by track
  std::size_t count = 0;
  for (const Slice& slice : scene.slices) {
    if (slice.end_ns <= shown->start_ns || slice.start_ns >= shown->end_ns) continue;
    if (scene.tracks[slice.track].rank < 0) continue;
    if (++count > most_slices) break;
    slices[slice.track].push_back({static_cast<double>(slice.start_ns - shown->start_ns) / 1000,
                                   static_cast<double>(slice.end_ns - slice.start_ns) / 1000,
                                   slice.name, slice.category});
  }
  for (std::size_t i = 0; i < scene.ranks.size(); ++i) {
    Json tracks = Json::array();
    for (const auto& [track, list] : slices)
      if (scene.tracks[track].rank == scene.ranks[i])
        tracks.push_back({{"name", scene.tracks[track].name},
                          {"host", scene.tracks[track].kind == Track::Kind::host},
                          {"slices", list}});
    result["ranks"].push_back({{"name", scene.rank_names[i]}, {"tracks", tracks}});
  }
  result["texts"] = scene.texts;
  result["cut"] = count > most_slices;
  return result;
}

Json path_json(const job::Job& job, const simulate::Timeline& timeline) {
  Json links = Json::array();
  if (timeline.critical_path.empty()) return links;
  using What = simulate::CriticalLink::What;
  // Neighbours of the same kind are one piece: the page shows a bar, not ten thousand ops.
  std::string last;
  for (const simulate::CriticalLink& link : timeline.critical_path) {
    std::string what = link.what == What::host ? "host" : link.what == What::wait ? "wait" : "";
    const auto& ops =
        job.classes[std::min<std::size_t>(link.rank_class, job.classes.size() - 1)].recording.ops;
    if (what.empty())
      what = link.op < ops.size() ? std::string(kind_name(ops[link.op].work)) : "other";
    const double us = static_cast<double>(link.end_ns - link.start_ns) / 1000;
    if (what == last)
      links.back()[1] = links.back()[1].get<double>() + us;
    else
      links.push_back({what, us});
    last = what;
  }
  return links;
}

Json memory_json(const Prediction& prediction) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>> groups;
  for (const RankMemory& memory : prediction.memory)
    groups[{-memory.peak_bytes, memory.capacity_bytes}].push_back(memory.rank);
  Json list = Json::array();
  for (const auto& [key, ranks] : groups)
    list.push_back({{"ranks", rank_list(ranks)}, {"peak", -key.first}, {"capacity", key.second}});
  return list;
}

}  // namespace

std::string html_page(const Prediction& prediction, const job::Job& job,
                      const simulate::Timeline& timeline) {
  Json data = {{"prediction", Json::parse(to_json(prediction))},
               {"memory", memory_json(prediction)},
               {"timeline", timeline_json(job, timeline)},
               {"path", path_json(job, timeline)}};
  // Inside <script> a "<" could begin its end: kernel names are the program's, not ours. In JSON it
  // stands only within strings.
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    c == '<' ? text += "\\u003c" : text += c;
  std::string page(page_template);
  const std::string_view slot = "/*DATA*/null";
  page.replace(page.find(slot), slot.size(), text);
  return page;
}

}  // namespace maya::report
