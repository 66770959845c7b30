// The answers of `maya estimate` and `maya net` as JSON. These verbs print them, and `maya engine`
// sends them.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "estimate/table.h"
#include "maya/catalog.h"
#include "maya/estimate.h"
#include "maya/result.h"
#include "network/table.h"
#include "predict/settings.h"

namespace maya::cli {

using Json = nlohmann::ordered_json;

// Estimators by GPU name, created on first use.
class Devices {
 public:
  Devices(const catalog::Catalog& catalog, std::string calibration)
      : catalog_(catalog), calibration_(std::move(calibration)) {}
  Result<estimate::Device> operator()(std::string_view name);

 private:
  struct Made {
    catalog::Gpu gpu;
    std::unique_ptr<estimate::Estimator> estimator;
  };
  const catalog::Catalog& catalog_;
  std::string calibration_;
  std::map<std::string, Made> made_;
};

Json to_json(const estimate::Answer& answer, const Op& op, const catalog::Gpu& gpu);

struct NetQuestion {
  std::string cluster, collective, sizes{"1MB..1GB"};
  int ranks{};
  predict::Pairs settings;
};
struct NetAnswer {
  catalog::Cluster cluster;
  std::vector<network::Row> rows;
  std::vector<std::string> notes;
  int ranks{};
};
// The NCCL_* variables of this process are used, as in a run that is started from here.
Result<NetAnswer> ask(const catalog::Catalog& catalog, const NetQuestion& question);
Json to_json(const NetAnswer& answer, const NetQuestion& question);

}  // namespace maya::cli
