// Keeps the catalogue and the models of GPUs for several predictions. Reading them takes longer
// than simulating a small job.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "catalog/flat.h"
#include "maya/catalog.h"
#include "maya/estimate.h"
#include "maya/result.h"

namespace maya::predict {

class Reuse {
 public:
  Result<const catalog::Catalog*> catalog() {
    if (!catalog_) {
      auto loaded = catalog::Catalog::load();
      if (!loaded) return loaded.error();
      catalog_ = std::move(*loaded);
    }
    return &*catalog_;
  }

  // The estimator for a GPU. A GPU whose figures are changed by a what-if has its own estimator.
  Result<const estimate::Estimator*> estimator(const catalog::Cluster& cluster,
                                               const std::string& calibration,
                                               const estimate::Libraries& libraries) {
    catalog::Cluster alone;
    alone.gpu = cluster.gpu;
    const std::string key = catalog::to_flat(alone) + "\n" + calibration + "\n" + libraries.torch;
    if (auto found = estimators_.find(key); found != estimators_.end()) return found->second.get();
    auto made =
        estimate::make_estimator(cluster.gpu, catalog_->directory(), calibration, libraries);
    if (!made) return made.error();
    constexpr std::size_t most = 8;  // a few megabytes each
    if (estimators_.size() >= most) estimators_.clear();
    return (estimators_[key] = std::move(*made)).get();
  }

 private:
  std::optional<catalog::Catalog> catalog_;
  std::map<std::string, std::unique_ptr<estimate::Estimator>> estimators_;
};

}  // namespace maya::predict
