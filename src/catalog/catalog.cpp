#include "maya/catalog.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "catalog/cluster_file.h"
#include "catalog/directory.h"
#include "catalog/fields.h"
#include "catalog/gpu_file.h"
#include "catalog/names.h"
#include "catalog/suggest.h"

namespace maya::catalog {
namespace {

namespace fs = std::filesystem;

// The TOML files of a folder, by name.
Result<std::vector<TomlFile>> read_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (entry.path().extension() == ".toml") paths.push_back(entry.path().string());
  if (code) return Error{folder.string() + ": cannot be read (" + code.message() + ")"};
  std::sort(paths.begin(), paths.end());
  std::vector<TomlFile> files;
  for (const std::string& path : paths) {
    auto file = read_toml(path);
    if (!file) return file.error();
    files.push_back(*std::move(file));
  }
  return files;
}

bool derives(const TomlFile& file) {
  return std::any_of(file.entries.begin(), file.entries.end(),
                     [](const Entry& e) { return e.key == "base"; });
}

}  // namespace

Result<Catalog> Catalog::load(const std::string& directory) {
  Catalog catalog;
  catalog.directory_ = directory;
  if (directory.empty()) {
    auto found = find_directory();
    if (!found) return found.error();
    catalog.directory_ = *found;
  }
  fs::path root(catalog.directory_);
  auto gpus = read_folder(root / "gpus");
  if (!gpus) return gpus.error();
  for (const TomlFile& file : *gpus) {
    auto gpu = gpu_of(file);
    if (!gpu) return gpu.error();
    catalog.gpus_.push_back(*std::move(gpu));
  }
  auto hosts = read_folder(root / "hosts");
  if (!hosts) return hosts.error();
  for (const TomlFile& file : *hosts) {
    auto host = host_of(file);
    if (!host) return host.error();
    catalog.hosts_.push_back(*std::move(host));
  }
  auto clusters = read_folder(root / "clusters");
  if (!clusters) return clusters.error();
  Known known{catalog.directory_, catalog.gpus_, catalog.hosts_, catalog.clusters_};
  for (bool derived : {false, true})  // one level of `base` within the catalogue
    for (const TomlFile& file : *clusters) {
      if (derives(file) != derived) continue;
      auto cluster = cluster_of(file, known);
      if (!cluster) return cluster.error();
      catalog.clusters_.push_back(*std::move(cluster));
    }
  std::sort(catalog.clusters_.begin(), catalog.clusters_.end(),
            [](const Cluster& a, const Cluster& b) { return a.name < b.name; });
  return catalog;
}

Result<Gpu> Catalog::gpu(std::string_view name) const { return find_gpu(name, gpus_); }

Result<Cluster> Catalog::cluster(
    std::string_view spec,
    const std::vector<std::pair<std::string, std::string>>& overrides) const {
  Known known{directory_, gpus_, hosts_, clusters_};
  Cluster cluster;
  std::string_view name = spec;
  int count = 0;
  std::string text(spec);
  constexpr std::size_t longest = 4096;  // of a path
  if (spec.size() > longest)
    return Error{"the name of the cluster has " + std::to_string(spec.size()) +
                 " characters, which is too long; `maya clusters` lists the known ones"};
  if (is_path(spec)) {
    auto file = read_toml(text);
    if (!file) return file.error();
    Result<Cluster> read = Error{};
    if (describes_gpu(*file)) {
      auto gpu = user_gpu(*file, gpus_);
      if (!gpu) return gpu.error();
      read = single_node(*gpu, 1, known);
    } else {
      read = cluster_of(*file, known);
    }
    if (!read) return read;
    cluster = *std::move(read);
  } else {
    if (auto colon = spec.rfind(':'); colon != spec.npos) {
      name = spec.substr(0, colon);
      auto number = spec.substr(colon + 1);
      auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), count);
      if (code != std::errc{} || end != number.data() + number.size() || count < 1)
        return Error{"'" + text + "': expected a number of nodes, 1 or more, after the colon"};
    }
    if (const Cluster* found = cluster_called(name, clusters_)) {
      cluster = *found;
      if (count) cluster.nodes = count;
    } else if (const Gpu* gpu = gpu_called(name, gpus_)) {
      // A single GPU or, with a count, that many in one machine.
      auto one = single_node(*gpu, count ? count : 1, known);
      if (!one) return one;
      cluster = *std::move(one);
    } else {
      std::vector<std::string> names;
      for (const Cluster& c : clusters_) names.push_back(c.name);
      for (const Gpu& g : gpus_) names.push_back(g.name);
      return Error{
          "unknown cluster or GPU '" + std::string(name) + "'" +
          suggestion(name, names, "; `maya clusters` and `maya gpus` list the known ones") +
          " (a file needs the ending .toml)"};
    }
  }
  if (auto status = apply(cluster, overrides, known); !status)
    return Error{"'" + text + "': " + status.error().message};
  return cluster;
}

}  // namespace maya::catalog
