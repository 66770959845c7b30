#include "predict/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <variant>

#include "catalog/suggest.h"
#include "maya/op.h"

namespace maya::predict {
namespace {

constexpr CollectiveKind collectives[] = {
    CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
    CollectiveKind::broadcast,  CollectiveKind::reduce,     CollectiveKind::all_to_all,
    CollectiveKind::gather,     CollectiveKind::scatter,    CollectiveKind::barrier};

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < std::variant_size_v<Work>; ++kind)
    names.emplace_back(kind_name(kind));
  for (CollectiveKind kind : collectives) names.emplace_back(enum_name(kind));
  return names;
}

Result<double> number(const std::string& key, const std::string& text, bool zero) {
  const double largest = zero ? 1e6 : 1e15;  // factors; tokens of a step
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0 || (!zero && value == 0) || value > largest)
    return Error{
        fmt::format("--set {}={}: expected a number {} 0 and up to {:g}, for example {}={}", key,
                    text, zero ? "of at least" : "above", largest, key, zero ? "0.5" : "4096")};
  return value;
}

}  // namespace

double Settings::factor(const Work& work) const {
  double result = 1;
  if (auto found = scale.find(std::string(kind_name(work))); found != scale.end())
    result *= found->second;
  if (const auto* collective = std::get_if<Collective>(&work))
    if (auto found = scale.find(std::string(enum_name(collective->kind))); found != scale.end())
      result *= found->second;
  return result;
}

Result<Settings> parse_settings(const Pairs& pairs) {
  Settings settings;
  for (const auto& [key, value] : pairs) {
    const bool is_scale = key.rfind("scale.", 0) == 0;
    const bool is_work =
        key == "tokens_per_step" || key == "samples_per_step" || key == "images_per_step";
    if (!is_scale && !is_work && key != "communication") {
      settings.cluster.emplace_back(key, value);
      continue;
    }
    const Result<double> amount = number(key, value, !is_work);
    if (!amount) return amount.error();
    if (is_scale) {
      const std::string family = key.substr(6);
      const std::vector<std::string> known = families();
      if (std::find(known.begin(), known.end(), family) == known.end())
        return Error{fmt::format("--set {}: unknown family '{}'{}", key, family,
                                 catalog::suggestion(family, known))};
      settings.scale[family] = *amount;
    } else if (is_work) {
      settings.units = report::StepUnits{key.substr(0, key.find('_')), *amount};
    } else {
      settings.communication = *amount;
    }
  }
  return settings;
}

Result<std::pair<std::string, std::string>> split_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Error{
        fmt::format("--set {}: expected key=value, for example --set network.nic_gbps=50", text)};
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace maya::predict
