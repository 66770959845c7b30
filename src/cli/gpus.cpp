#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "maya/catalog.h"

namespace maya::cli {
namespace {

double peak(const catalog::Gpu& gpu, DType type) {
  auto found = gpu.peak_tflops.find(type);
  return found == gpu.peak_tflops.end() ? 0 : found->second;
}

std::string cell(double value, const char* format = "{:.0f}") {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "-";
}

nlohmann::ordered_json to_json(const catalog::Gpu& gpu) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::object();
  for (const auto& [type, tflops] : gpu.peak_tflops) peaks[std::string(name(type))] = tflops;
  return {{"name", gpu.name},
          {"marketing", gpu.marketing},
          {"also", gpu.also},
          {"architecture", gpu.architecture},
          {"capability", fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor)},
          {"sms", gpu.sms},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_gbps", gpu.memory_gbps},
          {"peak_tflops", peaks},
          {"nvlink_gbps", gpu.nvlink_gbps},
          {"usd_per_hour", gpu.usd_per_hour},
          {"price_source", gpu.price_source}};
}

int run(bool json) {
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return fail(catalog.error());
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const catalog::Gpu& gpu : catalog->gpus()) list.push_back(to_json(gpu));
    fmt::print("{}\n", list.dump(2));
    return success;
  }
  fmt::print("{:<18}{:<11}{:>4}{:>5}{:>9}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "GPU", "", "cc", "SMs",
             "memory", "GB/s", "f32", "f16/bf16", "fp8", "NVLink", "$/hour");
  for (const catalog::Gpu& gpu : catalog->gpus())
    fmt::print(
        "{:<18}{:<11}{:>4}{:>5}{:>9}{:>8.0f}{:>9}{:>9}{:>9}{:>9}{:>9}\n", gpu.name,
        gpu.architecture, fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor), gpu.sms,
        fmt::format("{:.0f} GiB", static_cast<double>(gpu.memory_bytes) / (1 << 30)),
        gpu.memory_gbps, cell(peak(gpu, DType::f32), "{:.1f}"),
        cell(std::max(peak(gpu, DType::bf16), peak(gpu, DType::f16))),
        cell(peak(gpu, DType::f8e4m3)), cell(gpu.nvlink_gbps), cell(gpu.usd_per_hour, "{:.2f}"));
  fmt::print(
      "\nTFLOP/s are dense peaks; NVLink is GB/s in one direction. Common names work too: H100, "
      "RTX "
      "4090,\nNVIDIA A100-SXM4-40GB. Your own GPU: ten figures of its data sheet in "
      "a "
      "TOML file, named where a GPU's\nname goes (see {}/README.md).\n",
      catalog->directory());
  return success;
}

}  // namespace

void add_gpus(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("gpus", "List the GPUs of the catalogue");
  verb->footer("Example:\n  maya gpus --json");
  verb->add_flag("--json", *json, "Print JSON");
  verb->callback([json] { finish(run(*json)); });
}

}  // namespace maya::cli
