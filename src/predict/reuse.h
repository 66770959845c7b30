// The catalogue and the models of GPUs, read once for several predictions: reading them takes
// longer than simulating a small job.
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

  // Of a GPU of the catalogue. One whose figures a what-if changes has models of its own.
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
