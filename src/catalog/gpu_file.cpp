#include "catalog/gpu_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "catalog/fields.h"
#include "catalog/names.h"
#include "catalog/suggest.h"

namespace maya::catalog {
namespace {

constexpr const char* kTen =
    "capability_major, capability_minor, sms, boost_clock_mhz, memory_bytes, memory_gbps, "
    "l2_bytes, "
    "tdp_watts, peak_tflops.f32, peak_tflops.f16";

double peak(const Gpu& gpu, DType type) {
  auto found = gpu.peak_tflops.find(type);
  return found == gpu.peak_tflops.end() ? 0 : found->second;
}

// Prefers the same compute capability, then the same architecture, then the nearest generation, and
// among those the most similar size.
const Gpu& most_like(const Gpu& gpu, const std::vector<Gpu>& known) {
  auto distance = [&](const Gpu& other) {
    const double generation = std::abs(10 * gpu.capability_major + gpu.capability_minor -
                                       10 * other.capability_major - other.capability_minor);
    const bool same = !gpu.architecture.empty() && gpu.architecture == other.architecture;
    const double size = std::abs(std::log2(std::max(1, gpu.sms) * std::max(1.0, gpu.memory_gbps) /
                                           (std::max(1, other.sms) * other.memory_gbps)));
    return 100 * generation + (same ? 0 : 10) + std::min(size, 9.0);
  };
  return *std::min_element(known.begin(), known.end(),
                           [&](const Gpu& a, const Gpu& b) { return distance(a) < distance(b); });
}

template <class T>
void fill(T& value, const T& other) {
  if (value == T{}) value = other;
}

void complete(Gpu& gpu, const Gpu& like) {
  fill(gpu.architecture, like.architecture);
  fill(gpu.shared_per_sm, like.shared_per_sm);
  fill(gpu.shared_per_block_optin, like.shared_per_block_optin);
  fill(gpu.registers_per_sm, like.registers_per_sm);
  fill(gpu.max_threads_per_sm, like.max_threads_per_sm);
  fill(gpu.max_blocks_per_sm, like.max_blocks_per_sm);
  fill(gpu.context_bytes, like.context_bytes);
  fill(gpu.pcie_gbps, like.pcie_gbps);
  fill(gpu.launch_latency_us, like.launch_latency_us);
  fill(gpu.memory_bus_bits, like.memory_bus_bits);
  fill(gpu.l2_bytes, like.l2_bytes);
  fill(gpu.tdp_watts, like.tdp_watts);
  if (gpu.memory_clock_mhz <= 0 && gpu.memory_bus_bits > 0)
    gpu.memory_clock_mhz = gpu.memory_gbps * 1e9 * 8 / 2 / gpu.memory_bus_bits / 1e6;
  if (gpu.base_clock_mhz <= 0)
    gpu.base_clock_mhz = gpu.boost_clock_mhz * like.base_clock_mhz / like.boost_clock_mhz;
  if (gpu.marketing.empty()) gpu.marketing = "NVIDIA " + gpu.name;
  // Rates that are not given are scaled from those of the similar GPU: rates of tensor cores with
  // f16, others with f32.
  for (auto [type, rate] : like.peak_tflops) {
    if (gpu.peak_tflops.count(type)) continue;
    const DType reference =
        type == DType::f64 || peak(gpu, DType::f16) <= 0 ? DType::f32 : DType::f16;
    if (peak(like, reference) > 0)
      gpu.peak_tflops[type] = rate * peak(gpu, reference) / peak(like, reference);
  }
}

}  // namespace

bool is_path(std::string_view spec) {
  return spec.ends_with(".toml") || spec.find('/') != spec.npos;
}

bool describes_gpu(const TomlFile& file) {
  bool sms = false, cluster = false;
  for (const Entry& entry : file.entries) {
    sms |= entry.key == "sms" || entry.key.starts_with("peak_tflops.");
    cluster |= entry.key == "gpu" || entry.key == "base" || entry.key == "gpus_per_node";
  }
  return sms && !cluster;
}

Result<Gpu> user_gpu(const TomlFile& file, const std::vector<Gpu>& known) {
  Gpu given;
  for (const Entry& entry : file.entries)
    if (auto status = set_gpu(given, entry.key, entry.value); !status)
      return Error{where(file, entry) + status.error().message};
  if (given.name.empty()) given.name = stem(file.path);
  auto need = [&](const char* key, double value) -> Status {
    if (value > 0) return {};
    return Error{file.path + ": the key '" + key +
                 "' is missing or zero; a GPU's data sheet here has at least " + kTen};
  };
  // A GPU with a name of the catalogue would use the fitted models of that GPU.
  if (std::any_of(known.begin(), known.end(), [&](const Gpu& g) { return g.name == given.name; }))
    return Error{file.path + ": the catalogue has a GPU called '" + given.name +
                 "'; give yours another name"};
  for (auto [key, value] : std::initializer_list<std::pair<const char*, double>>{
           {"capability_major", given.capability_major},
           {"sms", given.sms},
           {"boost_clock_mhz", given.boost_clock_mhz},
           {"memory_bytes", static_cast<double>(given.memory_bytes)},
           {"memory_gbps", given.memory_gbps},
           {"peak_tflops.f32", peak(given, DType::f32)},
           {"peak_tflops.f16", given.capability_major >= 7 ? peak(given, DType::f16) : 1}})
    if (auto status = need(key, value); !status) return status.error();
  if (!known.empty()) complete(given, most_like(given, known));
  if (given.context_bytes >= given.memory_bytes)
    return Error{file.path + ": memory_bytes is smaller than a context (" +
                 std::to_string(given.context_bytes >> 20) +
                 " MiB); it is a number of bytes, or a text such as \"24 GiB\""};
  return given;
}

Result<Gpu> find_gpu(std::string_view spec, const std::vector<Gpu>& known,
                     const std::string& beside) {
  if (!is_path(spec)) {
    if (const Gpu* gpu = gpu_called(spec, known)) return *gpu;
    std::vector<std::string> names;
    for (const Gpu& gpu : known) names.push_back(gpu.name);
    return Error{"unknown GPU '" + std::string(spec) + "'" +
                 suggestion(spec, names, "; `maya gpus` lists the known ones") +
                 "; to add it, write its data sheet into a TOML file (" + kTen +
                 ") and name the file instead"};
  }
  std::filesystem::path path(spec);
  if (!beside.empty() && path.is_relative())
    path = std::filesystem::path(beside).parent_path() / path;
  auto file = read_toml(path.string());
  if (!file) return file.error();
  if (!describes_gpu(*file))
    return Error{path.string() + ": expected a GPU's data sheet with " + kTen};
  return user_gpu(*file, known);
}

}  // namespace maya::catalog
