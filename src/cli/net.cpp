#include <fmt/format.h>

#include "cli/answers.h"
#include "cli/command.h"
#include "maya/catalog.h"
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

int run(const Options& options) {
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return fail(catalog.error());
  NetQuestion question{options.cluster, options.kind, options.sizes, options.ranks, {}};
  for (const std::string& text : options.settings) {
    auto setting = predict::split_setting(text);
    if (!setting) return fail(setting.error(), usage);
    question.settings.push_back(*setting);
  }
  if (const auto sizes = network::parse_sizes(options.sizes); !sizes)
    return fail(sizes.error(), usage);
  const auto answer = ask(*catalog, question);
  if (!answer) return fail(answer.error());
  for (const std::string& note : answer->notes) fmt::print(stderr, "maya: {}\n", note);
  fmt::print("{}", options.json ? to_json(*answer, question).dump(2) + "\n"
                                : network::print(answer->rows));
  return success;
}

}  // namespace

void add_net(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "net", "Predict time and bandwidth of a collective, in the format of nccl-tests");
  verb->footer(
      "Examples:\n"
      "  maya net dgx-h100:2 all_reduce 1MB..1GB\n"
      "  maya net p4d:4 all_gather 64MB --json\n"
      "  NCCL_ALGO=Tree maya net dgx-a100:2 all_reduce\n\n"
      "Collectives: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, "
      "gather,\nscatter, send_recv.");
  verb->add_option("SPEC", options->cluster, "Cluster: dgx-h100:2, p4d, mine.toml")->required();
  verb->add_option("COLLECTIVE", options->kind, "all_reduce, all_gather, ...")->required();
  verb->add_option("SIZES", options->sizes, "One size, or first..last in powers of two")
      ->capture_default_str();
  verb->add_option("--ranks", options->ranks, "Use the first N GPUs (default: all)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--set", options->settings, "What if: network.nic_gbps=200")
      ->type_name("KEY=VALUE")
      ->take_all();
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
