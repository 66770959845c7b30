#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "maya/catalog.h"
#include "network/open.h"
#include "network/table.h"
#include "predict/settings.h"

namespace maya::cli {
namespace {

struct Options {
  std::string cluster, kind, sizes{"1MB..1GB"};
  std::vector<std::string> settings;
  int ranks{};
  bool json{};
};

// NCCL_* of the caller: what it would be for a run started here.
std::map<std::string, std::string> nccl_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (text.rfind("NCCL_", 0) == 0 && equals != std::string_view::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

int run(const Options& options) {
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return fail(catalog.error());
  predict::Pairs overrides;
  for (const std::string& text : options.settings) {
    auto setting = predict::split_setting(text);
    if (!setting) return fail(setting.error(), usage);
    overrides.push_back(*setting);
  }
  const auto cluster = catalog->cluster(options.cluster, overrides);
  if (!cluster) return fail(cluster.error());
  const auto sizes = network::parse_sizes(options.sizes);
  if (!sizes) return fail(sizes.error(), usage);
  const auto environment = nccl_environment();
  const auto rows = network::table(*cluster, options.kind, *sizes, options.ranks, environment);
  if (!rows) return fail(rows.error());
  for (const std::string& note : network::environment_notes(environment))
    fmt::print(stderr, "maya: {}\n", note);
  if (!options.json) {
    fmt::print("{}", network::print(*rows));
    return success;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const network::Row& row : *rows)
    list.push_back({{"bytes", row.bytes},
                    {"time_us", row.time.ns / 1000},
                    {"low_us", row.time.low_ns / 1000},
                    {"high_us", row.time.high_ns / 1000},
                    {"algorithm", row.time.algorithm},
                    {"protocol", row.time.protocol},
                    {"channels", row.time.channels},
                    {"algbw_gbps", row.algbw_gbps},
                    {"busbw_gbps", row.busbw_gbps},
                    {"origin", estimate::name(row.time.origin)}});
  fmt::print("{}\n", nlohmann::ordered_json(
                         {{"cluster", cluster->name},
                          {"collective", options.kind},
                          {"ranks", options.ranks ? options.ranks : cluster->world_size()},
                          {"rows", list}})
                         .dump(2));
  return success;
}

}  // namespace

void add_net(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "net", "Time and bandwidth of a collective on a cluster, as nccl-tests prints them");
  verb->footer(
      "Examples:\n"
      "  maya net dgx-h100:2 all_reduce 1MB..1GB\n"
      "  maya net p4d:4 all_gather 64MB --json\n"
      "  NCCL_ALGO=Tree maya net dgx-a100:2 all_reduce\n\n"
      "Collectives: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, "
      "gather,\nscatter, send_recv.");
  verb->add_option("SPEC", options->cluster, "Cluster: dgx-h100:2, p4d, mine.toml")->required();
  verb->add_option("COLLECTIVE", options->kind, "all_reduce, all_gather, ...")->required();
  verb->add_option("SIZES", options->sizes, "One size, or first..last, doubling")
      ->capture_default_str();
  verb->add_option("--ranks", options->ranks, "The first N GPUs (default: all)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--set", options->settings, "What if: network.nic_gbps=200")
      ->type_name("KEY=VALUE")
      ->take_all();
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
