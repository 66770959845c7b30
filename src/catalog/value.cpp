#include "catalog/value.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace maya::catalog {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr Suffix kBandwidth[] = {{"GB/s", 1},      {"TB/s", 1000},    {"MB/s", 1e-3},
                                 {"Gb/s", 0.125},  {"Gbit/s", 0.125}, {"Tb/s", 125},
                                 {"Mb/s", 1.25e-4}};
constexpr Suffix kBytes[] = {{"B", 1},        {"KB", 1e3},        {"MB", 1e6},          {"GB", 1e9},
                             {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
constexpr Suffix kTime[] = {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}};
constexpr Suffix kClock[] = {{"MHz", 1}, {"GHz", 1e3}};

std::string_view expectation(Unit unit) {
  switch (unit) {
    case Unit::text:
      return "a text in quotes";
    case Unit::flag:
      return "true or false";
    case Unit::count:
      return "a whole number, not negative";
    case Unit::number:
      return "a number, not negative";
    case Unit::mhz:
      return "a clock in MHz such as 1980, or \"1.98 GHz\"";
    case Unit::bytes:
      return "a size in bytes, or a text such as \"80 GiB\"";
    case Unit::gbytes:
      return "a bandwidth in GB/s such as 450, or a text such as \"450 GB/s\"";
    case Unit::gbits:
      return "a card's bandwidth in Gbit/s such as 400, or a text such as \"400 Gb/s\" or \"50 "
             "GB/s\"";
    case Unit::us:
      return "a time in microseconds, or a text such as \"800 ns\"";
    case Unit::watts:
      return "a power in watts";
    case Unit::usd:
      return "a price in US dollars";
  }
  return "";
}

template <std::size_t N>
std::optional<double> with_suffix(std::string_view text, const Suffix (&suffixes)[N]) {
  double number{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{}) return std::nullopt;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Suffix& s : suffixes)
    if (s.text == rest) return number * s.factor;
  return std::nullopt;
}

// The value in the unit of the field: GB/s for both kinds of bandwidth.
std::optional<double> number(const Value& value, Unit unit) {
  std::optional<double> v;
  if (auto* plain = std::get_if<double>(&value)) {
    v = unit == Unit::gbits ? *plain / 8 : *plain;
  } else if (auto* text = std::get_if<std::string>(&value)) {
    if (unit == Unit::gbytes || unit == Unit::gbits) v = with_suffix(*text, kBandwidth);
    if (unit == Unit::bytes) v = with_suffix(*text, kBytes);
    if (unit == Unit::us) v = with_suffix(*text, kTime);
    if (unit == Unit::mhz) v = with_suffix(*text, kClock);
  }
  if (v && (!std::isfinite(*v) || *v < 0)) return std::nullopt;
  return v;
}

template <class T>
std::string assign_whole(T& to, const Value& value, Unit unit) {
  auto v = number(value, unit);
  if (!v || *v != std::floor(*v) || 2 * *v > static_cast<double>(std::numeric_limits<T>::max()))
    return std::string(expectation(unit));
  to = static_cast<T>(*v);
  return {};
}

}  // namespace

Value value_of_text(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  double v{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code == std::errc{} && end == text.data() + text.size()) return v;
  return std::string(text);
}

std::string assign(std::string& to, const Value& value, Unit unit) {
  auto* text = std::get_if<std::string>(&value);
  if (!text) return std::string(expectation(unit));
  to = *text;
  return {};
}

std::string assign(bool& to, const Value& value, Unit unit) {
  auto* flag = std::get_if<bool>(&value);
  if (!flag) return std::string(expectation(unit));
  to = *flag;
  return {};
}

std::string assign(int& to, const Value& value, Unit unit) { return assign_whole(to, value, unit); }
std::string assign(std::int64_t& to, const Value& value, Unit unit) {
  return assign_whole(to, value, unit);
}

std::string assign(double& to, const Value& value, Unit unit) {
  auto v = number(value, unit);
  if (!v) return std::string(expectation(unit));
  to = *v;
  return {};
}

std::string describe(const Value& value) {
  if (auto* text = std::get_if<std::string>(&value)) return '"' + *text + '"';
  if (auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, std::get<double>(value)).ptr;
  return {buffer, end};
}

}  // namespace maya::catalog
