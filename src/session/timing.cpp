#include "session/timing.h"

#include "session/state.h"

namespace maya::session {

const estimate::Estimator* Timing::estimator() {
  if (!tried_) {
    tried_ = true;
    State& s = state();
    auto made = estimate::make_estimator(s.settings.cluster.gpu, s.settings.models_directory);
    if (made)
      estimator_ = std::move(*made);
    else
      s.recorder.warning("no modelled durations inside the run: " + made.error().message);
  }
  return estimator_.get();
}

double Timing::ns(const Op& op) {
  std::lock_guard guard(mutex_);
  const auto* e = estimator();
  return e != nullptr ? (*e)(op).ns : 0;
}

double Timing::ns(std::uint32_t op) {
  {
    std::lock_guard guard(mutex_);
    if (op < cache_.size() && cache_[op] >= 0) return cache_[op];
  }
  double value = ns(state().recorder.op_of(op));
  std::lock_guard guard(mutex_);
  if (cache_.size() <= op) cache_.resize(op + 1, -1.0f);
  cache_[op] = static_cast<float>(value);
  return value;
}

Timing& timing() {
  static auto* instance = new Timing;
  return *instance;
}

}  // namespace maya::session
