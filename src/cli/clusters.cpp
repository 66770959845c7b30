#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "catalog/draw.h"
#include "cli/command.h"
#include "maya/catalog.h"

namespace maya::cli {
namespace {

struct Options {
  std::string name;
  bool json{};
};

nlohmann::ordered_json to_json(const catalog::Cluster& cluster) {
  return {{"name", cluster.name},
          {"gpu", cluster.gpu.name},
          {"gpus_per_node", cluster.gpus_per_node},
          {"nodes", cluster.nodes},
          {"host", cluster.host.name},
          {"nvswitch", cluster.nvswitch},
          {"nvls", cluster.nvls},
          {"intra",
           {{"name", cluster.intra.name},
            {"gbps", cluster.intra.gbps},
            {"latency_us", cluster.intra.latency_us}}},
          {"nic",
           {{"name", cluster.nic.name},
            {"gbps", cluster.nic.gbps},
            {"latency_us", cluster.nic.latency_us}}},
          {"nics_per_node", cluster.nics_per_node},
          {"fabric", cluster.fabric},
          {"oversubscription", cluster.oversubscription},
          {"usd_per_gpu_hour", cluster.usd_per_gpu_hour},
          {"price_source", cluster.price_source}};
}

int run(const Options& options) {
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return fail(catalog.error());
  if (!options.name.empty()) {
    const auto cluster = catalog->cluster(options.name);
    if (!cluster) return fail(cluster.error());
    if (options.json)
      fmt::print("{}\n", to_json(*cluster).dump(2));
    else
      fmt::print("{}", catalog::draw(*cluster));
    return success;
  }
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const catalog::Cluster& cluster : catalog->clusters()) list.push_back(to_json(cluster));
    fmt::print("{}\n", list.dump(2));
    return success;
  }
  fmt::print("{:<26}{:<17}{:>5}  {:<24}{:<27}{:>8}\n", "cluster", "GPU", "GPUs", "within a node",
             "between nodes", "$/GPU h");
  for (const catalog::Cluster& c : catalog->clusters())
    fmt::print(
        "{:<26}{:<17}{:>5}  {:<24}{:<27}{:>8}\n", c.name, c.gpu.name, c.gpus_per_node,
        fmt::format("{} {:.0f} GB/s", c.intra.name.empty() ? "link" : c.intra.name, c.intra.gbps),
        c.nics_per_node > 0
            ? fmt::format("{} x {:.1f} GB/s {}", c.nics_per_node, c.nic.gbps, c.fabric)
            : "-",
        c.usd_per_gpu_hour > 0 ? fmt::format("{:.2f}", c.usd_per_gpu_hour) : "-");
  fmt::print(
      "\nName a cluster to see a drawing (maya clusters dgx-h100:4). Your own: a TOML file in "
      "place of "
      "the name.\n");
  return success;
}

}  // namespace

void add_clusters(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("clusters", "List the clusters of the catalogue, or draw one");
  verb->footer(
      "Examples:\n  maya clusters\n  maya clusters dgx-h100:4\n  maya clusters mine.toml --json");
  verb->add_option("NAME", options->name, "Cluster with an optional node count, GPU or TOML file");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
