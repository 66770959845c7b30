// report.html: one file with markup, style and script, into which the data of the run is inserted
// as JSON. It needs no network access.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "maya/report.h"
#include "report/communication.h"
#include "report/format.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/scene.h"

namespace maya::report {
namespace {

using Json = nlohmann::json;

// Five digits are more than the page shows, and keep a timeline of many numbers small.
double tidy(double value) { return rounded(value, 5); }

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
  // Adjacent links of the same kind are merged, because the page shows a bar and not single ops.
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
  const catalog::Cluster cluster;
  const CodeCosts code;
  return html_page({prediction, job, timeline, cluster, code, {}, {}, {}});
}

namespace {

Json cost_json(const CodeCost& cost) {
  return {{"ms", tidy(cost.ms)},
          {"backward_ms", tidy(cost.backward_ms)},
          {"communication_ms", tidy(cost.communication_ms)},
          {"critical_ms", tidy(cost.critical_ms)},
          {"exposed_ms", tidy(cost.exposed_ms)},
          {"idle_ms", tidy(cost.idle_ms)},
          {"count", tidy(cost.count)}};
}

// The profile of the fullest rank; null: there is none.
const MemoryProfile* fullest(const std::vector<MemoryProfile>& profiles) {
  auto used = [](const MemoryProfile& one) {
    return std::accumulate(one.peak.bytes.begin(), one.peak.bytes.end(), std::int64_t{0});
  };
  const auto found = std::max_element(
      profiles.begin(), profiles.end(),
      [&](const MemoryProfile& a, const MemoryProfile& b) { return used(a) < used(b); });
  return found == profiles.end() ? nullptr : &*found;
}

Json code_json(const PageData& data, std::size_t most_lines) {
  const CodeCosts& code = data.code;
  if (code.empty()) return nullptr;
  const MemoryProfile* memory = fullest(data.memory);
  auto held = [](const auto& by_place, const auto& place) {
    const auto found = by_place.find(place);
    return found == by_place.end() ? std::int64_t{0} : found->second;
  };
  Json lines = Json::array(), modules = Json::array();
  for (const LineCost& cost : code.lines) {
    if (lines.size() == most_lines) break;
    Json line = cost_json(cost);
    line["file"] = cost.file, line["line"] = cost.line, line["function"] = cost.function;
    line["source"] = cost.source;
    if (memory) line["peak_bytes"] = held(memory->lines, std::pair(cost.file, cost.line));
    lines.push_back(std::move(line));
  }
  for (const ModuleCost& cost : code.modules) {
    Json module = cost_json(cost);
    module["path"] = cost.path;
    if (memory) module["peak_bytes"] = held(memory->modules, cost.path);
    modules.push_back(std::move(module));
  }
  return {{"lines", lines},
          {"modules", modules},
          {"known", tidy(code.known)},
          {"sources_changed", code.changed}};
}

// The flame graph as a tree: [name, own ns, children]. Branches that are too thin to see are
// omitted.
Json flame_json(const CodeCosts& code) {
  struct Node {
    double total{};
    std::map<std::string, Node> children;
  };
  Node root;
  for (const auto& [stack, ns] : code.stacks) {
    Node* at = &root;
    at->total += ns;
    for (std::size_t begin = 0; begin <= stack.size();) {
      const std::size_t end = std::min(stack.find(';', begin), stack.size());
      at = &at->children[stack.substr(begin, end - begin)];
      at->total += ns;
      begin = end + 1;
    }
  }
  auto write = [&](auto& self, const std::string& name, const Node& node) -> Json {
    Json children = Json::array();
    for (const auto& [child, below] : node.children)
      if (below.total > 0.0005 * root.total) children.push_back(self(self, child, below));
    return {name, std::round(node.total), children};
  };
  return root.total > 0 ? write(write, "a step", root) : Json(nullptr);
}

Json profiles_json(const std::vector<MemoryProfile>& profiles, bool points) {
  Json list = Json::array();
  for (const MemoryProfile& profile : profiles) {
    auto amounts = [](const MemoryPoint& point) {
      Json parts = Json::object();
      for (std::size_t i = 0; i < kinds_of_memory; ++i)
        if (point.bytes[i] != 0) parts[std::string(name(static_cast<Holds>(i)))] = point.bytes[i];
      return parts;
    };
    Json holders = Json::array();
    for (const MemoryHolder& holder : profile.holders)
      holders.push_back(
          {{"kind", name(holder.kind)}, {"who", holder.who}, {"bytes", holder.bytes}});
    Json one = {{"ranks", rank_list(profile.ranks)}, {"capacity_bytes", profile.capacity_bytes},
                {"detailed", profile.detailed},      {"by_order", profile.by_order},
                {"refused", profile.refused},        {"peak_us", tidy(profile.peak.us)},
                {"parts", amounts(profile.peak)},    {"largest", holders}};
    if (points) {
      Json series = Json::array();
      for (const MemoryPoint& point : profile.points) {
        Json row = {tidy(point.us)};
        for (const std::int64_t bytes : point.bytes) row.push_back(bytes);
        series.push_back(std::move(row));
      }
      one["points"] = std::move(series);
    }
    list.push_back(std::move(one));
  }
  return list;
}

Json communicators_json(const std::vector<CommunicatorCost>& costs) {
  Json list = Json::array();
  for (const CommunicatorCost& cost : costs) {
    Json calls = Json::array();
    for (const CallCost& call : cost.calls)
      calls.push_back({{"kind", call.kind},
                       {"bytes", call.bytes},
                       {"count", tidy(call.count)},
                       {"ms", tidy(call.ms)},
                       {"exposed_ms", tidy(call.exposed_ms)},
                       {"waiting_ms", tidy(call.waiting_ms)},
                       {"busbw_gbps", tidy(call.busbw_gbps)}});
    list.push_back({{"name", cost.name},
                    {"size", cost.size},
                    {"ranks", rank_list(cost.ranks)},
                    {"alike", cost.alike},
                    {"ms", tidy(cost.ms)},
                    {"exposed_ms", tidy(cost.exposed_ms)},
                    {"waiting_ms", tidy(cost.waiting_ms)},
                    {"last", cost.last},
                    {"calls", calls}});
  }
  return list;
}

Json what_ifs_json(const PageData& data) {
  Json list = Json::array();
  const double step = data.prediction.step ? data.prediction.step->ms : 0;
  for (const WhatIf& one : data.what_ifs)
    list.push_back({{"what", one.what},
                    {"command", one.command},
                    {"ms", tidy(one.ms)},
                    {"gain_ms", one.ms > 0 ? tidy(step - one.ms) : 0.0},
                    {"gain", one.ms > 0 && step > 0 ? tidy(1 - one.ms / step) : 0.0},
                    {"memory_bytes", one.memory_bytes},
                    {"capacity_bytes", one.capacity_bytes},
                    {"problem", one.problem}});
  return list;
}

Json pipeline_json(const PageData& data) {
  Json list = Json::array();
  for (const StageSchedule& stage : pipeline_schedule(data.job, data.timeline)) {
    Json pieces = Json::array();
    for (const StageSchedule::Piece& piece : stage.pieces)
      pieces.push_back({tidy(piece.start_us), tidy(piece.us), std::string(1, piece.pass)});
    list.push_back(
        {{"ranks", rank_list(stage.ranks)}, {"busy", tidy(stage.busy)}, {"pieces", pieces}});
  }
  return list;
}

// The figures of the GPU for the roofline plot.
Json gpu_json(const catalog::Gpu& gpu) {
  Json peaks = Json::object();
  for (const auto& [type, tflops] : gpu.peak_tflops) peaks[std::string(name(type))] = tflops;
  return {{"name", gpu.name}, {"memory_gbps", gpu.memory_gbps}, {"peak_tflops", peaks}};
}

// What the page was computed from, so that it can be computed again.
Json provenance_json(const PageData& data) {
  Json rows = Json::array();
  auto row = [&](const std::string& what, const std::string& value) {
    if (!value.empty()) rows.push_back({what, value});
  };
  row("command", data.prediction.command);
  row("Maya", MAYA_VERSION);
  if (!data.job.classes.empty()) {
    std::string versions;
    for (const auto& [library, version] : data.job.classes[0].recording.identity.versions)
      versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", library, version);
    row("libraries of the run", versions);
  }
  const catalog::Cluster& cluster = data.cluster;
  const catalog::Gpu& gpu = cluster.gpu;
  if (cluster.name.empty()) return rows;
  row("catalogue: cluster",
      fmt::format("{}, {} node{} of {} GPU{}{}{}", cluster.name, cluster.nodes,
                  cluster.nodes == 1 ? "" : "s", cluster.gpus_per_node,
                  cluster.gpus_per_node == 1 ? "" : "s",
                  cluster.gpus_per_node > 1 ? fmt::format(", {} {:g} GB/s per GPU",
                                                          cluster.intra.name, cluster.intra.gbps)
                                            : "",
                  cluster.nics_per_node > 0 && cluster.nodes > 1
                      ? fmt::format(", {} network cards of {:g} GB/s a node", cluster.nics_per_node,
                                    cluster.nic.gbps)
                      : ""));
  row("catalogue: GPU",
      fmt::format("{}, {} SMs, {}, {:g} GB/s", gpu.name, gpu.sms,
                  human_bytes(static_cast<double>(gpu.memory_bytes)), gpu.memory_gbps));
  std::string settings;
  for (const auto& [key, value] : data.prediction.settings)
    settings += fmt::format("{}{}={}", settings.empty() ? "" : " ", key, value);
  row("--set", settings);
  return rows;
}

// Escapes text for HTML. Names of kernels are not trusted.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

void put(std::string& page, std::string_view slot, const std::string& text) {
  if (const std::size_t at = page.find(slot); at != std::string::npos)
    page.replace(at, slot.size(), text);
}

}  // namespace

std::string details_json(const PageData& data) {
  const Json json = {
      {"code", code_json(data, 50)},
      {"memory_at_peak", profiles_json(data.memory, false)},
      {"communicators", communicators_json(communicator_costs(data.job, data.timeline))},
      {"what_if", what_ifs_json(data)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string html_page(const PageData& data) {
  const Json all = {
      {"prediction", Json::parse(to_json(data.prediction))},
      {"memory", memory_json(data.prediction)},
      {"timeline", timeline_json(data.job, data.timeline)},
      {"path", path_json(data.job, data.timeline)},
      {"code", code_json(data, 200)},
      {"flame", flame_json(data.code)},
      {"profiles", profiles_json(data.memory, true)},
      {"communicators", communicators_json(communicator_costs(data.job, data.timeline))},
      {"pipeline", pipeline_json(data)},
      {"what_if", what_ifs_json(data)},
      {"serving", data.serving.empty() ? Json() : Json::parse(data.serving, nullptr, false)},
      {"gpu", gpu_json(data.cluster.gpu)},
      {"made", provenance_json(data)}};
  // Inside <script> a "<" could begin the end tag: names of kernels are not trusted. In JSON it
  // occurs only within strings.
  std::string text;
  for (const char c : all.dump(-1, ' ', false, Json::error_handler_t::replace))
    c == '<' ? text += "\\u003c" : text += c;
  std::string page(page_template);
  Style plain;
  plain.width = 110;
  // The data is inserted first: it has no "<", so it cannot contain the other placeholder. A
  // command could contain the placeholder of the data.
  put(page, "/*DATA*/null", text);
  put(page, "<!--SUMMARY-->", escaped(summary(data.prediction, plain)));
  return page;
}

}  // namespace maya::report
