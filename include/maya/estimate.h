// Predicts how long one op takes on one GPU, with an interval and the origin of the answer.
#pragma once

#include <memory>
#include <string>

#include "maya/catalog.h"
#include "maya/op.h"
#include "maya/result.h"

namespace maya::estimate {

enum class Origin : std::uint8_t { measured, fitted, first_principles, unknown };
std::string_view name(Origin origin);

struct Estimate {
  double ns{};                 // time on the device, without the gap before the kernel
  double low_ns{}, high_ns{};  // 80 % interval
  Origin origin{Origin::first_principles};
  // Measured by itself on data that draws little power: within a job it takes longer (src/cost).
  bool cool{};
};

// Versions of the libraries that issue the kernels, from the recording or from the user. An empty
// version means the newest one that the models know.
struct Libraries {
  std::string torch;  // "2.15.0+cu130"
};

// Immutable after load; safe to use from several threads. Evaluates in under a microsecond.
class Estimator {
 public:
  virtual ~Estimator() = default;
  // Takes any op that runs on one GPU. For Collective and PointToPoint use maya/network.h.
  virtual Estimate operator()(const Op& op) const = 0;
};

// Loads the models of catalog/models/ and, if given, the calibration file of a user. Libraries
// older than the learned models are predicted with the models that were fitted to measurements of
// those libraries.
Result<std::unique_ptr<Estimator>> make_estimator(const catalog::Gpu& gpu,
                                                  const std::string& catalog_directory,
                                                  const std::string& calibration = "",
                                                  const Libraries& libraries = {});

}  // namespace maya::estimate
