#include "catalog/fields.h"

#include <cmath>
#include <filesystem>
#include <vector>

#include "catalog/suggest.h"

namespace maya::catalog {
namespace {

bool is_source(std::string_view key) { return key == "source" || key.starts_with("sources."); }

Status wrong(std::string_view key, const Value& value, const std::string& expected) {
  return Error{std::string(key) + ": expected " + expected + ", found " + describe(value)};
}

// Assigns a value while visiting the fields with each_*, and remembers the result.
struct Setter {
  std::string_view key;
  const Value& value;
  bool found = false;
  std::string expected;
  std::vector<std::string> known;

  template <class T>
  void operator()(const char* name, T& member, Unit unit) {
    known.emplace_back(name);
    if (key != name) return;
    found = true;
    expected = assign(member, value, unit);
  }
  Status status(std::string_view what) const {
    if (found) return expected.empty() ? Status{} : wrong(key, value, expected);
    return Error{"unknown key '" + std::string(key) + "' of a " + std::string(what) +
                 suggestion(key, known)};
  }
};

template <class T>
Status check_present(const TomlFile& file,
                     std::initializer_list<std::pair<const char*, T>> needed) {
  for (const auto& [key, value] : needed)
    if (!(value > 0))
      return Error{file.path + ": the key '" + key +
                   "' is missing or zero; add it with its source"};
  return {};
}

}  // namespace

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string where(const TomlFile& file, const Entry& entry) {
  return file.path + ":" + std::to_string(entry.line) + ": ";
}

Status set_gpu(Gpu& gpu, std::string_view key, const Value& value) {
  if (is_source(key)) return {};
  if (key.starts_with("peak_tflops.")) {
    auto type = parse_dtype(key.substr(12));
    if (!type || *type == DType::unknown)
      return Error{"unknown type in '" + std::string(key) + "'; write peak_tflops.bf16, .f32, …"};
    double v{};
    if (auto expected = assign(v, value, Unit::number); !expected.empty())
      return wrong(key, value, expected);
    gpu.peak_tflops[*type] = v;
    return {};
  }
  Setter setter{key, value};
  setter.known.emplace_back("peak_tflops.f16");
  each_gpu(gpu, setter);
  return setter.status("GPU");
}

Status set_host(Host& host, std::string_view key, const Value& value) {
  if (is_source(key)) return {};
  Setter setter{key, value};
  each_host(host, setter);
  return setter.status("host");
}

Status set_cluster(Cluster& cluster, std::string_view key, const Value& value) {
  if (is_source(key)) return {};
  if (key == "network.nvlink_gbps") {
    double v{};
    if (auto expected = assign(v, value, Unit::gbytes); !expected.empty())
      return wrong(key, value, expected);
    cluster.gpu.nvlink_gbps = cluster.intra.gbps = v;
    return {};
  }
  if (key.starts_with("network.model.")) {
    std::string name(key.substr(14));
    auto at = cluster.extra.find(name);
    if (at == cluster.extra.end()) {
      std::vector<std::string> known;
      for (const auto& [k, ignored] : cluster.extra) known.push_back(k);
      return Error{"unknown key '" + std::string(key) + "' of the network model" +
                   suggestion(name, known)};
    }
    double v{};
    if (auto* flag = std::get_if<bool>(&value)) {
      v = *flag ? 1 : 0;
    } else if (auto expected = assign(v, value, Unit::number); !expected.empty()) {
      return wrong(key, value, expected);
    }
    at->second = v;
    return {};
  }
  Setter setter{key, value};
  setter.known = {"gpu", "host", "base", "network.nvlink_gbps", "network.model."};
  each_cluster(cluster, setter);
  return setter.status("cluster");
}

Result<Gpu> gpu_of(const TomlFile& file) {
  Gpu gpu;
  gpu.name = stem(file.path);
  for (const Entry& entry : file.entries)
    if (auto status = set_gpu(gpu, entry.key, entry.value); !status)
      return Error{where(file, entry) + status.error().message};
  if (gpu.name != stem(file.path))
    return Error{file.path + ": name is '" + gpu.name + "' but the file is called " +
                 stem(file.path) + ".toml; make them equal"};
  auto status = check_present<double>(
      file,
      {{"sms", gpu.sms},
       {"boost_clock_mhz", gpu.boost_clock_mhz},
       {"memory_bytes", static_cast<double>(gpu.memory_bytes)},
       {"memory_gbps", gpu.memory_gbps},
       {"capability_major", gpu.capability_major},
       {"pcie_gbps", gpu.pcie_gbps},
       {"peak_tflops.f32", gpu.peak_tflops.count(DType::f32) ? gpu.peak_tflops[DType::f32] : 0}});
  if (!status) return status.error();
  if (gpu.context_bytes >= gpu.memory_bytes)
    return Error{file.path + ": context_bytes must be smaller than memory_bytes"};
  return gpu;
}

Result<Host> host_of(const TomlFile& file) {
  Host host;
  host.name = stem(file.path);
  for (const Entry& entry : file.entries)
    if (auto status = set_host(host, entry.key, entry.value); !status)
      return Error{where(file, entry) + status.error().message};
  auto status = check_present<double>(
      file, {{"speed", host.speed}, {"launch_us", host.launch_us}, {"pcie_gbps", host.pcie_gbps}});
  if (!status) return status.error();
  return host;
}

}  // namespace maya::catalog
