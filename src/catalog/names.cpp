#include "catalog/names.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace maya::catalog {
namespace {

// "NVIDIA GeForce RTX 4090" and "rtx-4090" are both "rtx4090".
std::string plain(std::string_view name) {
  std::string text;
  for (unsigned char c : name)
    if (std::isalnum(c)) text += static_cast<char>(std::tolower(c));
  for (std::string_view brand : {"nvidia", "geforce", "tesla"})
    if (text.starts_with(brand)) text.erase(0, brand.size());
  return text;
}

bool is_among(const std::string& wanted, std::string_view names) {
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    if (wanted == plain(names.substr(0, comma))) return true;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return false;
}

template <class T, class Is>
const T* first(const std::vector<T>& known, Is is) {
  auto found = std::find_if(known.begin(), known.end(), is);
  return found == known.end() ? nullptr : &*found;
}

}  // namespace

const Gpu* gpu_called(std::string_view name, const std::vector<Gpu>& known) {
  const std::string wanted = plain(name);
  if (wanted.empty()) return nullptr;
  const Gpu* gpu = first(known, [&](const Gpu& g) { return wanted == plain(g.name); });
  if (!gpu) gpu = first(known, [&](const Gpu& g) { return is_among(wanted, g.also); });
  if (!gpu) gpu = first(known, [&](const Gpu& g) { return wanted == plain(g.marketing); });
  return gpu;
}

const Cluster* cluster_called(std::string_view name, const std::vector<Cluster>& known) {
  const std::string wanted = plain(name);
  if (wanted.empty()) return nullptr;
  return first(known, [&](const Cluster& c) { return wanted == plain(c.name); });
}

}  // namespace maya::catalog
