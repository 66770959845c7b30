#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/visible.h"
#include "maya/report.h"
#include "report/format.h"

namespace maya::report {
namespace {

using Json = nlohmann::ordered_json;

// Nine significant digits are far more accurate than any model, and short to read.
double tidy(double value) { return rounded(value, 9); }

Json coverage_json(const Coverage& coverage) {
  Json unknown = Json::array(), calls = Json::array();
  for (const KernelShare& kernel : coverage.unknown_kernels)
    unknown.push_back(
        {{"name", kernel.name}, {"share", tidy(kernel.share)}, {"count", kernel.count}});
  for (const trace::Count& call : coverage.unimplemented_calls)
    calls.push_back({{"name", call.name}, {"count", call.count}});
  return {{"measured", tidy(coverage.measured)},
          {"fitted", tidy(coverage.fitted)},
          {"first_principles", tidy(coverage.first_principles)},
          {"unknown", tidy(coverage.unknown)},
          {"unknown_kernels", std::move(unknown)},
          {"unimplemented_calls", std::move(calls)}};
}

Json step_json(const std::optional<StepTime>& step) {
  if (!step) return nullptr;
  Json each = Json::array();
  for (double ms : step->each_ms) each.push_back(tidy(ms));
  return {{"ms", tidy(step->ms)}, {"low_ms", tidy(step->low_ms)}, {"high_ms", tidy(step->high_ms)},
          {"count", step->count}, {"found_by", step->found_by},   {"each_ms", std::move(each)}};
}

Json out_of_memory_json(const std::optional<OutOfMemory>& oom) {
  if (!oom) return nullptr;
  Json parts = Json::array();
  for (const MemoryPart& part : oom->in_use)
    parts.push_back({{"what", part.what}, {"bytes", part.bytes}});
  return {{"rank", oom->rank},
          {"requested_bytes", oom->requested_bytes},
          {"in_use_bytes", oom->in_use_bytes},
          {"capacity_bytes", oom->capacity_bytes},
          {"during_run", oom->during_run},
          {"where", oom->where},
          {"missing_bytes", oom->missing_bytes},
          {"estimated_missing_bytes",
           oom->estimated_missing_bytes ? Json(*oom->estimated_missing_bytes) : Json(nullptr)},
          {"in_use", std::move(parts)}};
}

}  // namespace

std::string to_json(const Prediction& p) {
  Json json;
  json["version"] = 1;
  json["world_size"] = p.world_size;
  json["gpus"] = p.gpus;
  json["cluster"] = p.cluster;
  json["gpu"] = p.gpu;
  json["command"] = p.command;
  json["rank_classes"] = p.rank_classes;
  Json settings = Json::object();
  for (const auto& [key, value] : p.settings) settings[key] = value;
  json["settings"] = settings;
  json["step"] = step_json(p.step);
  json["no_step"] = p.step ? Json(nullptr) : Json(p.no_step);
  json["breakdown_ms"] = {{"compute", tidy(p.breakdown.compute)},
                          {"communication", tidy(p.breakdown.communication)},
                          {"exposed_communication", tidy(p.breakdown.exposed_communication)},
                          {"copy", tidy(p.breakdown.copy)},
                          {"idle", tidy(p.breakdown.idle)},
                          {"host_bound", tidy(p.breakdown.host_bound)},
                          {"pipeline_bubble", tidy(p.breakdown.pipeline_bubble)},
                          {"waiting", tidy(p.breakdown.waiting)}};
  json["flops_per_step"] = tidy(p.flops_per_step);
  json["mfu"] = p.mfu ? Json(tidy(*p.mfu)) : Json(nullptr);
  json["mfu_dtype"] = p.mfu_dtype;
  json["throughput"] = nullptr;
  if (p.throughput)
    json["throughput"] = {{"unit", p.throughput->unit},
                          {"per_step", tidy(p.throughput->per_step)},
                          {"per_second", tidy(p.throughput->per_second)},
                          {"found_by", p.throughput->found_by}};
  json["memory"] = Json::array();
  for (const RankMemory& memory : p.memory)
    json["memory"].push_back({{"rank", memory.rank},
                              {"peak_bytes", memory.peak_bytes},
                              {"reserved_bytes", memory.reserved_bytes},
                              {"context_bytes", memory.context_bytes},
                              {"communicator_bytes", memory.communicator_bytes},
                              {"capacity_bytes", memory.capacity_bytes},
                              {"allocator_retries", memory.allocator_retries}});
  json["stages"] = Json::array();
  for (const PipelineStage& stage : p.stages)
    json["stages"].push_back({{"rank", stage.rank},
                              {"ranks", stage.ranks},
                              {"stand_in", stage.stand_in},
                              {"recorded", stage.recorded}});
  json["out_of_memory"] = out_of_memory_json(p.out_of_memory);
  const bool priced = p.cost.usd_per_gpu_hour > 0;
  json["cost"] = {
      {"usd_per_gpu_hour", priced ? Json(tidy(p.cost.usd_per_gpu_hour)) : Json(nullptr)},
      {"usd_per_step", p.step && priced ? Json(tidy(p.cost.usd_per_step)) : Json(nullptr)},
      {"source", p.cost.source}};
  json["coverage"] = coverage_json(p.coverage);
  json["largest_costs"] = Json::array();
  for (const LargestCost& cost : p.largest_costs)
    json["largest_costs"].push_back({{"what", cost.what},
                                     {"ms", tidy(cost.ms)},
                                     {"share", tidy(cost.share)},
                                     {"help", cost.help}});
  json["ops"] = Json::array();
  for (const OpCost& op : p.ops)
    json["ops"].push_back({{"kind", op.kind},
                           {"name", op.name},
                           {"sizes", op.sizes},
                           {"count", tidy(op.count)},
                           {"ms", tidy(op.ms)},
                           {"share", tidy(op.share)},
                           {"tflops", tidy(op.tflops)},
                           {"gbps", tidy(op.gbps)},
                           {"origin", op.origin}});
  json["families"] = Json::array();
  for (const FamilyCost& family : p.families)
    json["families"].push_back({{"family", family.family},
                                {"ms", tidy(family.ms)},
                                {"low_ms", tidy(family.low_ms)},
                                {"high_ms", tidy(family.high_ms)}});
  json["common_error"] = tidy(p.common_error);
  json["assumptions"] = Json::array();
  for (const Assumption& assumption : p.assumptions)
    json["assumptions"].push_back(
        {{"what", assumption.what},
         {"share", assumption.share ? Json(tidy(*assumption.share)) : Json(nullptr)}});
  json["notes"] = p.notes;
  // Names of kernels may contain any bytes; invalid UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// Escapes control characters in all strings, because the file is not trusted. Returns false if it
// is nested more deeply than any prediction.
bool make_visible(nlohmann::json& json, int depth = 0) {
  if (depth > 32) return false;
  if (json.is_string()) json = base::visible(json.get_ref<const std::string&>());
  if (json.is_structured())
    for (auto& inner : json)
      if (!make_visible(inner, depth + 1)) return false;
  return true;
}

bool integer_fits(const nlohmann::json& number, bool narrow) {
  if (!number.is_number()) return true;  // the conversion fails, and says so
  if (!number.is_number_integer()) return false;
  constexpr auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (number.is_number_unsigned() && number.get<std::uint64_t>() > most) return false;
  return !narrow || std::in_range<std::int32_t>(number.get<std::int64_t>());
}

// Whether all numbers below are integers that fit, where they are read as integers: the conversion
// of any other number is undefined or gives another number.
bool integers_fit(const nlohmann::json& json) {
  static const std::set<std::string_view> narrow = {"rank", "ranks", "stand_in",
                                                    "allocator_retries"};
  if (!json.is_structured()) return true;
  for (const auto& [key, value] : json.items()) {
    const bool counts = narrow.contains(key);
    const bool read_as_integer = counts || key == "count" || key.ends_with("bytes");
    if ((read_as_integer && !integer_fits(value, counts)) || !integers_fit(value)) return false;
  }
  return true;
}

bool all_integers_fit(const nlohmann::json& json) {
  for (const char* key : {"world_size", "gpus", "rank_classes"})
    if (json.contains(key) && !integer_fits(json[key], true)) return false;
  // The other parts have means, which are no integers.
  for (const char* key : {"step", "memory", "stages", "out_of_memory", "coverage"})
    if (json.contains(key) && !integers_fit(json[key])) return false;
  return true;
}

}  // namespace

Result<Prediction> from_json(const std::string& text, const std::string& where) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !make_visible(json))
    return Error{
        fmt::format("{} is not a prediction: expected a JSON object; create it again with "
                    "`maya predict RUN`",
                    where)};
  const nlohmann::json version = json.value("version", nlohmann::json(0));
  if (version != 1)
    return Error{
        fmt::format("{} has version {}, but this program reads version 1; create it again with "
                    "`maya predict RUN`",
                    where, version.dump())};
  if (!all_integers_fit(json))
    return Error{
        fmt::format("{} has a number that is not a count or a size; create it again with "
                    "`maya predict RUN`",
                    where)};
  try {
    Prediction p;
    p.world_size = json.at("world_size");
    p.gpus = json.value("gpus", p.world_size);
    p.cluster = json.at("cluster");
    p.gpu = json.value("gpu", "");
    p.command = json.value("command", "");
    p.rank_classes = json.value("rank_classes", 1);
    const nlohmann::json settings = json.value("settings", nlohmann::json::object());
    for (const auto& [key, value] : settings.items())
      p.settings.emplace_back(base::visible(key), value.get<std::string>());
    if (const auto& step = json.at("step"); !step.is_null())
      p.step = StepTime{step.at("ms"),       step.at("low_ms"),
                        step.at("high_ms"),  step.at("count"),
                        step.at("found_by"), step.value("each_ms", std::vector<double>{})};
    if (json.contains("no_step") && json["no_step"].is_string()) p.no_step = json["no_step"];
    const auto& parts = json.at("breakdown_ms");
    p.breakdown = {
        parts.at("compute"), parts.at("communication"), parts.at("exposed_communication"),
        parts.at("copy"),    parts.at("idle"),          parts.at("host_bound")};
    p.breakdown.pipeline_bubble = parts.value("pipeline_bubble", 0.0);
    p.breakdown.waiting = parts.value("waiting", 0.0);
    p.flops_per_step = json.at("flops_per_step");
    if (!json.at("mfu").is_null()) p.mfu = json.at("mfu").get<double>();
    p.mfu_dtype = json.value("mfu_dtype", "");
    if (json.contains("throughput") && !json["throughput"].is_null()) {
      const auto& rate = json["throughput"];
      p.throughput = Throughput{rate.at("unit"), rate.at("per_step"), rate.at("per_second"),
                                rate.at("found_by")};
    }
    for (const auto& memory : json.at("memory"))
      p.memory.push_back({memory.at("rank"), memory.at("peak_bytes"), memory.at("reserved_bytes"),
                          memory.value("context_bytes", std::int64_t{0}),
                          memory.value("communicator_bytes", std::int64_t{0}),
                          memory.at("capacity_bytes"),
                          memory.value("allocator_retries", std::uint32_t{0})});
    for (const auto& stage : json.value("stages", nlohmann::json::array()))
      p.stages.push_back(
          {stage.at("rank"), stage.at("ranks"), stage.at("stand_in"), stage.at("recorded")});
    if (const auto& oom = json.at("out_of_memory"); !oom.is_null()) {
      p.out_of_memory =
          OutOfMemory{oom.at("rank"), oom.at("requested_bytes"), oom.at("in_use_bytes"),
                      oom.at("capacity_bytes"), oom.value("during_run", true)};
      p.out_of_memory->where = oom.value("where", "");
      p.out_of_memory->missing_bytes = oom.value("missing_bytes", std::int64_t{0});
      if (oom.contains("estimated_missing_bytes") && !oom["estimated_missing_bytes"].is_null())
        p.out_of_memory->estimated_missing_bytes = oom["estimated_missing_bytes"];
      for (const auto& part : oom.value("in_use", nlohmann::json::array()))
        p.out_of_memory->in_use.push_back({part.at("what"), part.at("bytes")});
    }
    const auto& cost = json.at("cost");
    if (!cost.at("usd_per_gpu_hour").is_null())
      p.cost.usd_per_gpu_hour = cost.at("usd_per_gpu_hour");
    if (!cost.at("usd_per_step").is_null()) p.cost.usd_per_step = cost.at("usd_per_step");
    p.cost.source = cost.value("source", "");
    const auto& coverage = json.at("coverage");
    p.coverage.measured = coverage.at("measured");
    p.coverage.fitted = coverage.at("fitted");
    p.coverage.first_principles = coverage.at("first_principles");
    p.coverage.unknown = coverage.value("unknown", 0.0);
    for (const auto& kernel : coverage.at("unknown_kernels"))
      p.coverage.unknown_kernels.push_back(
          {kernel.at("name"), kernel.at("share"), kernel.at("count")});
    for (const auto& call : coverage.at("unimplemented_calls"))
      p.coverage.unimplemented_calls.push_back({call.at("name"), call.at("count")});
    for (const auto& item : json.value("largest_costs", nlohmann::json::array()))
      p.largest_costs.push_back(
          {item.at("what"), item.at("ms"), item.at("share"), item.at("help")});
    for (const auto& op : json.value("ops", nlohmann::json::array()))
      p.ops.push_back({op.at("kind"), op.at("name"), op.at("sizes"), op.at("count"), op.at("ms"),
                       op.at("share"), op.at("tflops"), op.at("gbps"), op.at("origin")});
    for (const auto& family : json.value("families", nlohmann::json::array()))
      p.families.push_back(
          {family.at("family"), family.at("ms"), family.at("low_ms"), family.at("high_ms")});
    p.common_error = json.value("common_error", 0.0);
    for (const auto& item : json.value("assumptions", nlohmann::json::array()))
      p.assumptions.push_back({item.at("what"), item.at("share").is_null()
                                                    ? std::optional<double>()
                                                    : item.at("share").get<double>()});
    p.notes = json.value("notes", std::vector<std::string>{});
    return p;
  } catch (const nlohmann::json::exception& problem) {
    return Error{
        fmt::format("{} is not a prediction of version 1 ({}); create it again with "
                    "`maya predict RUN`",
                    where, problem.what())};
  }
}

}  // namespace maya::report
