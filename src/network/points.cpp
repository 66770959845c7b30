// Helper of tools/fit_network.py, so that the fit uses the model itself. Reads commands from
// standard input, one per line, and answers each point with "µs algorithm protocol":
//
//   cluster SPEC [key=value]...      sets the cluster of the following points; keys are
//                                    network.model.*
//   environment [NCCL_X=value]...    sets the environment of the following points
//   point KIND RANKS STRIDE BYTES    asks for one time
#include <iostream>
#include <memory>
#include <sstream>

#include "network/open.h"

int main() {
  using namespace maya;
  auto catalog = catalog::Catalog::load();
  if (!catalog) {
    std::cerr << catalog.error().message << "\n";
    return 1;
  }
  std::unique_ptr<network::Network> net;
  std::map<std::string, std::string> environment;
  auto fail = [](const std::string& message) {
    std::cerr << message << "\n";
    return 1;
  };
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string word, text;
    in >> word;
    if (word == "environment") {
      environment.clear();
      while (in >> text)
        environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    } else if (word == "cluster") {
      std::string spec;
      in >> spec;
      std::vector<std::pair<std::string, std::string>> overrides;
      while (in >> text) {
        auto equals = text.find('=');
        overrides.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      }
      auto cluster = catalog->cluster(spec, overrides);
      if (!cluster) return fail(cluster.error().message);
      auto opened = network::open_network(*cluster, environment);
      if (!opened) return fail(opened.error().message);
      net = *std::move(opened);
    } else if (word == "point" && net) {
      std::string kind;
      int ranks{}, stride{};
      std::int64_t bytes{};
      in >> kind >> ranks >> stride >> bytes;
      network::CollectiveTime time;
      if (kind == "send_recv") {
        network::Message message{0, stride, bytes};
        time = net->messages({&message, 1});
      } else {
        auto parsed = parse_enum<CollectiveKind>(kind);
        if (!parsed) return fail("unknown collective " + kind);
        std::vector<std::int32_t> group;
        for (int i = 0; i < ranks; ++i) group.push_back(i * stride);
        time = net->collective({.kind = *parsed, .bytes = bytes, .root = 0}, group);
      }
      if (time.algorithm.empty()) time.algorithm = "-";
      if (time.protocol.empty()) time.protocol = "-";
      std::cout << time.ns / 1e3 << " " << time.algorithm << " " << time.protocol << "\n";
    }
  }
}
