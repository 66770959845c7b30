// The layers of an answer: the user's own measurement, a fitted model, first principles.
#include "maya/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "estimate/learned_model.h"
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

// Of the generation the learned models were measured with: `torch 2 4` in their section is the
// first.
bool current(const Libraries& libraries, const Section& section) {
  const auto* first = section.list("torch");
  int major = 0, minor = 0;
  if (!first || first->size() != 2 ||
      std::sscanf(libraries.torch.c_str(), "%d.%d", &major, &minor) != 2)
    return true;
  return std::pair<double, double>(major, minor) >= std::pair((*first)[0], (*first)[1]);
}

}  // namespace

Result<std::unique_ptr<Estimator>> make_estimator(const catalog::Gpu& gpu,
                                                  const std::string& catalog_directory,
                                                  const std::string& calibration,
                                                  const Libraries& libraries) {
  auto file = ModelFile::load(catalog_directory + "/models");
  if (!file) return file.error();
  const Chip chip = make_chip(gpu);
  LearnedModels learned;
  if (current(libraries, file->section("learned", chip))) {
    // A part whose 16-bit products were measured, if with older libraries, is no stranger.
    const bool stranger = gpu.capability_major >= 9 && !file->section("gemm.tensor", chip).fitted();
    auto loaded = LearnedModels::load(catalog_directory + "/models/learned", chip, stranger);
    if (!loaded) return loaded.error();
    learned = *std::move(loaded);
  }
  auto models = Models::make(chip, *file, std::move(learned));
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
