// How long one op takes on one GPU, how sure that is, and where the answer comes from.
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
  double ns{};                 // device time, without the gap before it
  double low_ns{}, high_ns{};  // 80 % interval
  Origin origin{Origin::first_principles};
  // Measured by itself on data that draws little power: within a job it takes longer (src/cost).
  bool cool{};
};

// The libraries that ran, as a recording or a user says; empty: today's.
struct Libraries {
  std::string torch;  // "2.15.0+cu130"
};

// Immutable after load; safe to use from several threads. Evaluates in under a microsecond.
class Estimator {
 public:
  virtual ~Estimator() = default;
  // Everything that runs on the GPU by itself (not Collective / PointToPoint: see maya/network.h).
  virtual Estimate operator()(const Op& op) const = 0;
};

// Models from catalog/models/, and a user's calibration file if given. Kernels of libraries older
// than the tables of learned models keep the models fitted to measurements of their time.
Result<std::unique_ptr<Estimator>> make_estimator(const catalog::Gpu& gpu,
                                                  const std::string& catalog_directory,
                                                  const std::string& calibration = "",
                                                  const Libraries& libraries = {});

}  // namespace maya::estimate
