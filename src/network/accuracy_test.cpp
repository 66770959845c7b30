// Checks the current catalogue against published sweeps. validation/network/errors.csv has for each
// point a prediction and its ratio to the measurement; the errors must stay within the published
// accuracy of the project.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include "network/open.h"

namespace maya::network {
namespace {

struct Mean {
  double sum{};
  int count{};
  void add(double error) { sum += error, ++count; }
  double percent() const { return count ? 100 * sum / count : 0; }
};

TEST(Accuracy, PublishedSweeps) {
  auto catalog = catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  ASSERT_TRUE(catalog);
  std::ifstream in(MAYA_SOURCE_DIR "/validation/network/errors.csv");
  ASSERT_TRUE(in);
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Network>> networks;
  Mean bandwidth, latency, shards, pairs;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream row(line);
    std::string system, spec, environment, kind, cell;
    std::getline(row, system, ','), std::getline(row, spec, ','),
        std::getline(row, environment, ',');
    std::getline(row, kind, ',');
    auto number = [&] {
      std::getline(row, cell, ',');
      return std::stod(cell);
    };
    int ranks = static_cast<int>(number());
    double bytes = number(), predicted = number(), ratio = number();
    double measured_us = predicted / ratio;
    auto& network = networks[{spec, environment}];
    if (!network) {
      std::map<std::string, std::string> variables;
      if (auto at = environment.find('='); at != environment.npos)
        variables[environment.substr(0, at)] = environment.substr(at + 1);
      auto cluster = catalog->cluster(spec);
      ASSERT_TRUE(cluster) << spec;
      auto opened = open_network(*cluster, variables);
      ASSERT_TRUE(opened) << spec;
      network = *std::move(opened);
    }
    double us{};
    if (kind == "send_recv") {
      Message message{0, 1, static_cast<std::int64_t>(bytes)};
      us = network->messages({&message, 1}).ns / 1e3;
    } else {
      std::vector<std::int32_t> group(static_cast<std::size_t>(ranks));
      std::iota(group.begin(), group.end(), 0);
      us = network
               ->collective({.kind = *parse_enum<CollectiveKind>(kind),
                             .bytes = static_cast<std::int64_t>(bytes)},
                            group)
               .ns /
           1e3;
    }
    double error = std::abs(us / measured_us - 1);
    constexpr double kMiB = 1 << 20;
    if (kind == "send_recv")
      pairs.add(error);
    else if (kind != "all_reduce")
      shards.add(error);
    else if (bytes < kMiB)
      latency.add(error);
    else if (bytes <= 4096 * kMiB)
      bandwidth.add(error);
  }
  std::printf(
      "mean absolute error: all-reduce 1 MiB to 4 GiB %.1f %% (%d), below %.1f %% (%d), "
      "all-gather and reduce-scatter %.1f %% (%d), send-receive %.1f %% (%d)\n",
      bandwidth.percent(), bandwidth.count, latency.percent(), latency.count, shards.percent(),
      shards.count, pairs.percent(), pairs.count);
  EXPECT_GT(bandwidth.count, 100);
  EXPECT_LE(bandwidth.percent(), 10);
  EXPECT_LE(latency.percent(), 25);
  EXPECT_LE(shards.percent(), 15);
  EXPECT_LE(pairs.percent(), 15);
}

}  // namespace
}  // namespace maya::network
