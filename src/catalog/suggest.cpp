#include "catalog/suggest.h"

#include <algorithm>
#include <numeric>

namespace maya::catalog {
namespace {

// Levenshtein distance, two rows.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string>& known,
                       const std::string& elsewhere) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& k : known) {
    bool part = name.size() >= 2 && k.find(name) != std::string::npos;
    std::size_t d = part ? k.starts_with(name) ? 0 : 1 : distance(name, k);
    if (part || d <= std::max<std::size_t>(1, std::min(name.size(), k.size()) / 3))
      near.emplace_back(d, k);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  if (!near.empty()) {
    std::size_t shown = std::min<std::size_t>(near.size(), 3);
    for (std::size_t i = 0; i < shown; ++i)
      text += (i == 0 ? "" : i + 1 == shown ? " or " : ", ") + near[i].second;
    return ": did you mean " + text + "?";
  }
  if (!elsewhere.empty()) return elsewhere;
  std::vector<std::string> sorted(known);
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& k : sorted) text += (text.empty() ? "" : ", ") + k;
  return "; known are " + text;
}

}  // namespace maya::catalog
