// How running work shares the GPU.
#include <algorithm>
#include <tuple>

#include "simulate/engine.h"

namespace maya::simulate {

// After all events of this nanosecond: free copy engines go to the copy that came first (then by
// priority, then by order of issue), and running work gets its rate.
void Engine::settle() {
  dirty_ = false;
  for (std::size_t e = 1; e < resource_count; ++e) {
    auto& queue = engine_queue_[e];
    if (queue.empty() || engine_user_[e] != none) continue;
    auto best = std::min_element(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Lane &x = lanes_[a], &y = lanes_[b];
      return std::tuple(x.started, x.priority, x.items[x.head].instruction, a) <
             std::tuple(y.started, y.priority, y.items[y.head].instruction, b);
    });
    std::uint32_t lane = *best;
    queue.erase(best);
    engine_user_[e] = lane;
    if (lanes_[lane].started < now_) lanes_[lane].cause = engine_freed_[e];
    lanes_[lane].started = now_;
    begin(lane);
  }
  dirty_ = false;
  set_rates();
  unsigned activity = 0;
  if (active_by_class_[static_cast<std::size_t>(Class::compute)] > 0)
    activity |= Accounting::compute;
  if (active_by_class_[static_cast<std::size_t>(Class::communication)] > 0 || !resident_.empty())
    activity |= Accounting::communication;
  if (active_by_class_[static_cast<std::size_t>(Class::copy)] > 0) activity |= Accounting::copy;
  accounting_.set(activity);
}

// Kernels take SMs in order of priority, then start; what is left goes to the next. Communication
// takes its SMs first. Transfers slow kernels further, and kernels slow transfers; collectives over
// the same links divide them.
void Engine::set_rates() {
  auto finish = [&](std::uint32_t index, Lane& lane, std::uint32_t rate) {
    if (rate == lane.rate && lane.timer != none) return;
    lane.remaining -= static_cast<std::int64_t>(lane.rate) * (now_ - lane.updated);
    lane.updated = now_;
    lane.rate = rate;
    if (rate == 0) {
      clear_timer(index);
      return;
    }
    std::int64_t ns =
        rate == one ? (lane.remaining + one - 1) >> one_shift : (lane.remaining + rate - 1) / rate;
    set_timer(index, now_ + std::max<std::int64_t>(ns, 0));
  };
  if (active_.size() == 1 && resident_.empty()) {
    finish(active_[0], lanes_[active_[0]], one);
    return;
  }
  if (active_.empty()) return;
  const std::uint32_t computing = active_by_class_[static_cast<std::size_t>(Class::compute)];
  const std::uint32_t transferring =
      active_by_class_[static_cast<std::size_t>(Class::communication)];
  std::uint32_t taken = 0, on_link[3]{};
  for (std::uint32_t i : resident_) taken += lanes_[i].share;
  order_.clear();
  for (std::uint32_t i : active_) {
    if (lanes_[i].what == Class::communication) {
      taken += lanes_[i].share;
      ++on_link[lanes_[i].link];
    } else if (lanes_[i].what == Class::compute) {
      order_.push_back(i);
    }
  }
  std::uint32_t left = one - std::min(taken, model_.max_communication_share);
  if (!model_.take_sms) left = one;
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Lane &x = lanes_[a], &y = lanes_[b];
    return std::tuple(x.priority, x.started, x.items[x.head].instruction, a) <
           std::tuple(y.priority, y.started, y.items[y.head].instruction, b);
  });
  for (std::uint32_t i : order_) {
    Lane& lane = lanes_[i];
    std::uint32_t got = std::min(left, lane.share);
    left -= got;
    std::uint64_t rate = got == lane.share ? one : (std::uint64_t{got} << one_shift) / lane.share;
    if (transferring > 0) rate = rate * model_.transfer_rate >> one_shift;
    finish(i, lane, static_cast<std::uint32_t>(rate));
  }
  for (std::uint32_t i : active_) {
    Lane& lane = lanes_[i];
    if (lane.what == Class::compute) continue;
    std::uint32_t rate = one;
    if (lane.what == Class::communication) {
      if (computing > 0) rate = model_.communication_rate;
      if (model_.share_links && lane.link < 2) rate /= on_link[lane.link];
    }
    finish(i, lane, rate);
  }
}

}  // namespace maya::simulate
