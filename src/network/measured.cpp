#include "network/measured.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/files.h"

namespace maya::network {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;  // of the file

CollectiveKind mirrored(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter ? CollectiveKind::all_gather : kind;
}

}  // namespace

double MeasuredCurve::nearest_measured(double bytes) const {
  const double last = first_bytes * std::exp2(static_cast<double>(us.size()) - 1);
  return std::clamp(bytes, first_bytes, last);
}

double MeasuredCurve::at(double bytes) const {
  const double place = std::log2(nearest_measured(bytes) / first_bytes);
  const auto low = std::min(static_cast<std::size_t>(place), us.size() - 1);
  const std::size_t high = std::min(low + 1, us.size() - 1);
  const double part = place - static_cast<double>(low);
  return us[low] * std::pow(us[high] / us[low], part);
}

std::vector<MeasuredCurve>& Measured::of(CollectiveKind kind, bool in_switch) {
  return curves_[std::min(static_cast<std::size_t>(kind), kKinds - 1)][in_switch];
}

const std::vector<MeasuredCurve>& Measured::curves(CollectiveKind kind, bool in_switch) const {
  return curves_[std::min(static_cast<std::size_t>(mirrored(kind)), kKinds - 1)][in_switch];
}

double Measured::engine_us(CollectiveLibrary library, int ranks, double bytes) const {
  const auto found = engines_.find(library);
  if (found == engines_.end()) return 0;
  const auto& curves = found->second;
  auto above = std::find_if(curves.begin(), curves.end(),
                            [&](const MeasuredCurve& c) { return c.ranks >= ranks; });
  if (above == curves.end()) return 0;
  if (above->ranks == ranks || above == curves.begin()) return above->at(bytes);
  const auto below = above - 1;
  const double share =
      std::log(double(ranks) / below->ranks) / std::log(double(above->ranks) / below->ranks);
  return std::pow(below->at(bytes), 1 - share) * std::pow(above->at(bytes), share);
}

Result<Measured> Measured::parse(std::string_view text, std::string_view gpu,
                                 const std::string& origin) {
  Measured out;
  std::istringstream in{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream row(line);
    std::string name, collective, where, cell;
    std::getline(row, name, ','), std::getline(row, collective, ','), std::getline(row, where, ',');
    if (name != gpu) continue;
    const auto kind = parse_enum<CollectiveKind>(collective);
    MeasuredCurve curve;
    std::getline(row, cell, ','), curve.ranks = std::atoi(cell.c_str());
    std::getline(row, cell, ','), curve.first_bytes = std::atof(cell.c_str());
    for (double us{}; row >> us;) curve.us.push_back(us);
    const bool positive = std::all_of(curve.us.begin(), curve.us.end(),
                                      [](double us) { return us > 0 && std::isfinite(us); });
    const auto library = parse_enum<CollectiveLibrary>(where);
    const bool engine = library && *library != CollectiveLibrary::nccl;
    const bool place = where == "switch" || where == "ring" || where == "any" ||
                       (engine && kind == CollectiveKind::all_reduce);
    if (!kind || !place || curve.ranks < 2 || !(curve.first_bytes >= 1) ||
        !std::isfinite(curve.first_bytes) || curve.us.empty() || !positive || !row.eof())
      return Error{
          origin + ":" + std::to_string(number) +
          ": expected gpu,collective,switch|ring|any|engine,ranks,first bytes,times in us, each "
          "above 0; found '" +
          line.substr(0, 60) + "'"};
    if (engine) {
      out.engines_[*library].push_back(curve);
      continue;
    }
    if (where != "ring") out.of(*kind, true).push_back(curve);
    if (where != "switch") out.of(*kind, false).push_back(curve);
  }
  auto sort = [](std::vector<MeasuredCurve>& curves) {
    std::sort(curves.begin(), curves.end(),
              [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  };
  for (auto& kinds : out.curves_)
    for (auto& curves : kinds) sort(curves);
  for (auto& [library, curves] : out.engines_) sort(curves);
  return out;
}

Result<Measured> Measured::load(const std::string& path, std::string_view gpu) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Measured{};
  auto text = base::read_file(path, kMostBytes);
  if (!text) return text.error();
  return parse(*text, gpu, path);
}

}  // namespace maya::network
