#include "predict/serving.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace maya::predict {
namespace {

using Json = nlohmann::ordered_json;

void add_price(Json& load, double usd_per_hour) {
  if (!load.is_object()) return;
  const auto rate = load.find("output_tokens_per_second");
  if (rate == load.end() || !rate->is_number() || rate->get<double>() <= 0) return;
  load["usd_per_million_output_tokens"] = usd_per_hour / (rate->get<double>() * 3600) * 1e6;
}

// Whether the file is nested no deeper than what `maya serve-bench` writes. To print it takes stack
// for each level.
bool is_flat(const Json& json, int depth = 0) {
  constexpr int most = 32;
  if (depth > most) return false;
  if (json.is_structured())
    for (const Json& inner : json)
      if (!is_flat(inner, depth + 1)) return false;
  return true;
}

}  // namespace

Result<Serving> serving_of(const std::string& directory, double usd_per_hour) {
  const std::string path = directory + "/serving.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Serving{};
  constexpr std::size_t most = 64 << 20;
  const Result<std::string> text = base::read_file(path, most);
  if (!text) return text.error();
  Json json = Json::parse(*text, nullptr, false);
  const auto loads = json.is_object() ? json.find("loads") : json.end();
  if (json.is_discarded() || !json.is_object() || loads == json.end() || !loads->is_array() ||
      !is_flat(json))
    return Error{
        fmt::format("{} is not what `maya serve-bench` writes: an object with `loads`", path)};
  if (usd_per_hour > 0) {
    for (Json& load : *loads) add_price(load, usd_per_hour);
    if (const auto capacity = json.find("capacity");
        capacity != json.end() && capacity->is_object() && capacity->contains("points"))
      for (Json& point : (*capacity)["points"]) add_price(point, usd_per_hour);
  }
  Serving serving;
  for (const Json& load : *loads)
    serving.answered |= load.is_object() && load.contains("completed") &&
                        load["completed"].is_number() && load["completed"].get<double>() > 0;
  serving.json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return serving;
}

}  // namespace maya::predict
