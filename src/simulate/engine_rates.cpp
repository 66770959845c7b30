// How running work shares the GPU.
#include <algorithm>
#include <tuple>

#include "simulate/engine.h"

namespace maya::simulate {

// The settling phase after all events of a nanosecond. Free copy engines are assigned to the copy
// that became ready first (then by priority, then by order of issue), and the rates of running work
// are set.
void Engine::settle() {
  unsigned activity = 0;
  for (Gpu& gpu : gpus_) {
    if (gpu.dirty) {
      grant_engines(gpu);
      gpu.dirty = false;
      set_rates(gpu);
    }
    if (gpu.active_by_class[static_cast<std::size_t>(Class::compute)] > 0)
      activity |= Accounting::compute;
    if (gpu.active_by_class[static_cast<std::size_t>(Class::communication)] > 0)
      activity |= Accounting::communication;
    else if (!gpu.resident.empty())
      activity |= Accounting::communication | waiting_for(gpu);
    if (gpu.active_by_class[static_cast<std::size_t>(Class::copy)] > 0)
      activity |= Accounting::copy;
  }
  dirty_ = false;
  accounting_.set(activity);
}

// What communication waits for if nothing is transferred. If both a message and a collective wait,
// the message is reported, because in most programs the collective waits for the message.
unsigned Engine::waiting_for(const Gpu& gpu) const {
  for (std::uint32_t index : gpu.resident)
    if (program_.communication_times[communication(lanes_[index]).time].family == messages_family)
      return Accounting::message_wait;
  return Accounting::collective_wait;
}

void Engine::grant_engines(Gpu& gpu) {
  for (std::size_t e = 1; e < resource_count; ++e) {
    auto& queue = gpu.engine_queue[e];
    if (queue.empty() || gpu.engine_user[e] != none) continue;
    auto best = std::min_element(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Lane &x = lanes_[a], &y = lanes_[b];
      return std::tuple(x.started, x.priority, x.items[x.head].instruction, a) <
             std::tuple(y.started, y.priority, y.items[y.head].instruction, b);
    });
    std::uint32_t lane = *best;
    queue.erase(best);
    gpu.engine_user[e] = lane;
    if (lanes_[lane].started < now_) lanes_[lane].cause = gpu.engine_freed[e];
    lanes_[lane].started = now_;
    begin(lane);
  }
}

// Communication takes its SMs first. Kernels get the remaining SMs in order of priority, then of
// their start. Transfers slow kernels down further, and kernels slow transfers down. Concurrent
// transfers share the GPU's ports.
void Engine::set_rates(Gpu& gpu) {
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
  if (gpu.active.size() == 1 && gpu.resident.empty()) {
    finish(gpu.active[0], lanes_[gpu.active[0]], one);
    return;
  }
  if (gpu.active.empty()) return;
  const std::uint32_t computing = gpu.active_by_class[static_cast<std::size_t>(Class::compute)];
  const std::uint32_t transferring =
      gpu.active_by_class[static_cast<std::size_t>(Class::communication)];
  std::uint32_t taken = 0, lost = 0;
  for (std::uint32_t i : gpu.resident) taken += lanes_[i].share;
  order_.clear();
  transfers_.clear();
  for (std::uint32_t i : gpu.active) {
    if (lanes_[i].what == Class::communication) {
      taken += lanes_[i].share;
      transfers_.push_back(i);
      lost += program_.communication_times[communication(lanes_[i]).time].memory;
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
    std::uint64_t rate = model_.rate_on(got, lane.share, lane.blocks);
    if (transferring > 0)
      rate = model_.beside_transfers(rate, std::min(lost, one / 2), lane.memory_bound);
    finish(i, lane, static_cast<std::uint32_t>(rate));
  }
  for (std::uint32_t i : gpu.active)
    if (lanes_[i].what != Class::compute && lanes_[i].what != Class::communication)
      finish(i, lanes_[i], one);
  const std::uint64_t alone = computing > 0 ? model_.communication_rate : one;
  if (transfers_.size() < 2 || !model_.share_links) {
    for (std::uint32_t i : transfers_) finish(i, lanes_[i], static_cast<std::uint32_t>(alone));
    return;
  }
  auto time_of = [&](std::uint32_t lane) { return communication(lanes_[lane]).time; };
  std::sort(transfers_.begin(), transfers_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return time_of(a) < time_of(b) || (time_of(a) == time_of(b) && a < b);
  });
  together_.clear();
  for (std::uint32_t i : transfers_) together_.push_back(time_of(i));
  const std::vector<std::uint32_t>& shares = link_shares_.of(together_);
  for (std::size_t k = 0; k < transfers_.size(); ++k)
    finish(transfers_[k], lanes_[transfers_[k]],
           std::max(1u, static_cast<std::uint32_t>(alone * shares[k] >> one_shift)));
}

}  // namespace maya::simulate
