#include "report/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace maya::report {
namespace {

// Formats with three or four significant digits.
std::string short_number(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude >= 100) return fmt::format("{:.1f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string human_ms(double ms) {
  if (ms >= 10'000) return fmt::format("{} s", short_number(ms / 1000));
  if (ms >= 1 || ms == 0) return fmt::format("{} ms", short_number(ms));
  return fmt::format("{} us", short_number(ms * 1000));
}

std::string human_bytes(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < units.size()) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{} {}", short_number(bytes), units[unit]);
}

std::string human_count(double value) {
  if (value < 100 && value != std::floor(value)) return short_number(value);
  std::string digits = fmt::format("{:.0f}", value);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return digits;
}

std::string human_flops(double flops) {
  static constexpr std::array units{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  std::size_t unit = 0;
  while (flops >= 1000 && unit + 1 < units.size()) flops /= 1000, ++unit;
  return fmt::format("{} {}", short_number(flops), units[unit]);
}

std::string human_usd(double usd) {
  if (usd >= 1 || usd == 0) return fmt::format("${:.2f}", usd);
  const int digits = static_cast<int>(std::ceil(-std::log10(usd))) + 1;
  return fmt::format("${:.{}f}", usd, digits < 12 ? digits : 12);
}

std::string percent(double share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return share > 0 && share < 0.0995 ? fmt::format("{:.1f} %", 100 * share)
                                     : fmt::format("{:.0f} %", 100 * share);
}

std::string rank_list(const std::vector<std::int32_t>& ranks) {
  std::string text;
  int runs = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (++runs > 4) return text + fmt::format(", and {} more", ranks.size() - i);
    if (!text.empty()) text += ", ";
    text += i == last ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::fabs(value))));
  const double scaled = value * scale;
  return std::isfinite(scaled) ? std::round(scaled) / scale : value;
}

int columns(const std::string& text) {
  int count = 0;
  for (unsigned char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

std::string fit(const std::string& text, int width) {
  const int have = columns(text);
  if (have <= width) return text + std::string(width - have, ' ');
  std::string cut;
  int kept = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++kept > width - 2) break;
    cut += text[i];
  }
  return cut + "..";
}

std::string fit_right(const std::string& text, int width) {
  const int have = columns(text);
  return have >= width ? text : std::string(width - have, ' ') + text;
}

std::vector<std::string> wrap(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!lines.back().empty() && columns(lines.back()) + 1 + columns(word) > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = space + 1;
  }
  return lines;
}

}  // namespace maya::report
