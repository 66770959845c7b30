// The layers of an answer: the user's own measurement, a fitted model, first principles.
#include "maya/estimate.h"

#include <algorithm>
#include <cmath>

#include "estimate/models.h"

namespace maya::estimate {

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::measured:
      return "measured";
    case Origin::fitted:
      return "fitted";
    case Origin::first_principles:
      return "first_principles";
    case Origin::unknown:
      return "unknown";
  }
  return "unknown";
}

namespace {

class LayeredEstimator final : public Estimator {
 public:
  LayeredEstimator(Models models, Calibration calibration)
      : models_(std::move(models)), calibration_(std::move(calibration)) {}
  Estimate operator()(const Op& op) const override {
    if (const auto* m = calibration_.find(op.work))
      return {m->ns, m->low_ns, m->high_ns, Origin::measured};
    return models_.evaluate(op);
  }

 private:
  Models models_;
  Calibration calibration_;
};

}  // namespace

Result<std::unique_ptr<Estimator>> make_estimator(const catalog::Gpu& gpu,
                                                  const std::string& catalog_directory,
                                                  const std::string& calibration) {
  auto file = ModelFile::load(catalog_directory + "/models");
  if (!file) return file.error();
  auto models = Models::make(make_chip(gpu), *file);
  if (!models) return models.error();
  Calibration own;
  if (!calibration.empty()) {
    auto loaded = Calibration::load(calibration);
    if (!loaded) return loaded.error();
    // Another GPU's measurements say nothing of this one.
    if (loaded->gpu().empty() || loaded->gpu() == gpu.name) own = *std::move(loaded);
  }
  models->calibrate(own);
  return std::unique_ptr<Estimator>(new LayeredEstimator(*std::move(models), std::move(own)));
}

}  // namespace maya::estimate
