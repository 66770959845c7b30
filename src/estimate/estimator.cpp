// The layers of an answer: the user's own measurement, a fitted model, first principles.
#include "maya/estimate.h"

#include <algorithm>
#include <cmath>

#include "estimate/models.h"

namespace maya::estimate {

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::measured: return "measured";
    case Origin::fitted: return "fitted";
    case Origin::first_principles: return "first_principles";
    case Origin::unknown: return "unknown";
  }
  return "unknown";
}

namespace {

class LayeredEstimator final : public Estimator {
 public:
  explicit LayeredEstimator(Models models) : models_(std::move(models)) {}
  Estimate operator()(const Op& op) const override { return models_.evaluate(op); }

 private:
  Models models_;
};

}  // namespace

Result<std::unique_ptr<Estimator>> make_estimator(const catalog::Gpu& gpu,
                                                  const std::string& catalog_directory,
                                                  const std::string& calibration) {
  auto file = ModelFile::load(catalog_directory + "/models");
  if (!file) return file.error();
  (void)calibration;
  auto models = Models::make(make_chip(gpu), *file);
  if (!models) return models.error();
  return std::unique_ptr<Estimator>(new LayeredEstimator(*std::move(models)));
}

}  // namespace maya::estimate
