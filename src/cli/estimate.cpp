#include "maya/estimate.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/answers.h"
#include "cli/command.h"
#include "estimate/table.h"
#include "maya/catalog.h"

namespace maya::cli {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string gpu{"h100-sxm"}, csv, out, calibration;
  bool json{};
};

int one(const Options& options, Devices& devices) {
  const auto op = estimate::parse_op(options.words);
  if (!op) return fail(op.error(), usage);
  const auto device = devices(options.gpu);
  if (!device) return fail(device.error());
  const estimate::Answer answer = estimate::answer(*op, device->gpu, *device->estimator);
  if (!options.json) {
    fmt::print("{}\n", estimate::to_line(answer));
    if (!answer.warning.empty()) fmt::print(stderr, "maya: {}\n", answer.warning);
    return success;
  }
  fmt::print("{}\n", to_json(answer, *op, device->gpu).dump(2));
  return success;
}

int many(const Options& options, Devices& devices) {
  std::ifstream in(options.csv);
  if (options.csv != "-" && !in) return fail(fmt::format("cannot read {}", options.csv));
  std::ofstream file;
  if (!options.out.empty()) {
    file.open(options.out);
    if (!file) return fail(fmt::format("cannot write {}", options.out));
  }
  std::ostream& out = options.out.empty() ? std::cout : file;
  auto find = [&devices](std::string_view name) { return devices(name); };
  const auto summary =
      estimate::estimate_csv(options.csv == "-" ? std::cin : in, out, options.gpu, find);
  if (!summary) return fail(fmt::format("{}: {}", options.csv, summary.error().message));
  out.flush();
  if (!out) return fail(fmt::format("cannot write {}: is the disk full?", options.out));
  std::string line = fmt::format("{} rows, {} could not be read, {} flagged", summary->rows,
                                 summary->failed, summary->flagged);
  if (summary->compared > 0)
    line += fmt::format(
        "; against {} measurements: mean error {:.1f} %, median {:.1f} %, {:.0f} % inside the "
        "interval",
        summary->compared, 100 * summary->mean_error, 100 * summary->median_error,
        100 * summary->covered);
  // The table may be on stdout, so the summary goes to stderr.
  if (options.json && !options.out.empty()) {
    fmt::print("{}\n", nlohmann::ordered_json({{"rows", summary->rows},
                                               {"failed", summary->failed},
                                               {"flagged", summary->flagged},
                                               {"compared", summary->compared},
                                               {"mean_error", summary->mean_error},
                                               {"median_error", summary->median_error},
                                               {"covered", summary->covered}})
                           .dump(2));
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  return success;
}

int run(const Options& options) {
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return fail(catalog.error());
  Devices devices(*catalog, options.calibration);
  if (!options.csv.empty() && !options.words.empty())
    return fail("name one op or a --csv file, not both; see `maya estimate --help`", usage);
  if (!options.csv.empty()) return many(options, devices);
  if (options.words.empty())
    return fail(
        "name an op, for example gemm m=4096 n=4096 k=8192 dtype=bf16; see `maya estimate --help`",
        usage);
  return one(options, devices);
}

}  // namespace

void add_estimate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("estimate", "Predict the duration of one op, or of a CSV file of ops");
  verb->footer([] {
    return "Examples:\n"
           "  maya estimate gemm m=4096 n=4096 k=8192 dtype=bf16 --gpu h100-sxm\n"
           "  maya estimate --csv ops.csv --gpu a100-80gb-sxm --out with_times.csv\n\n" +
           estimate::help();
  });
  verb->add_option("OP", options->words, "The op and its keys: gemm m=4096 n=4096 k=8192");
  verb->add_option("--gpu", options->gpu, "GPU of the catalogue, or a TOML file of its data sheet")
      ->capture_default_str();
  verb->add_option("--csv", options->csv,
                   "One op per row (column `op`, then its keys); - is standard input")
      ->type_name("FILE");
  verb->add_option("--out", options->out, "File to write the CSV to (default: standard output)")
      ->type_name("FILE");
  verb->add_option("--calibration", options->calibration, "File of `maya calibrate`")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options] { finish(run(*options)); });
}

}  // namespace maya::cli
