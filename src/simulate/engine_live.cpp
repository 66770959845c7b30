// The event loop for live jobs: the program grows while it runs, and partners are other processes.
#include <algorithm>

#include "simulate/engine.h"

namespace maya::simulate {

void Engine::grow() {
  lanes_.resize(program_.lanes.size());
  gpus_.resize(std::max<std::size_t>(gpus_.size(), program_.devices));
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const LaneProgram& from = program_.lanes[i];
    Lane& lane = lanes_[i];
    if (lane.items == nullptr) {
      lane.priority = from.priority;
      lane.device = from.device;
    }
    lane.items = from.items.data();
    const auto size = static_cast<std::uint32_t>(from.items.size());
    if (size == lane.size) continue;
    lane.size = size;
    if (lane.state != State::done && lane.state != State::idle) continue;
    // A ticket at the end of the previously issued items belongs to a call that was already issued.
    lane.state = State::idle;
    work_.push_back(static_cast<std::uint32_t>(i));
  }
  for (; fresh_gpus_ < gpus_.size(); ++fresh_gpus_) gpus_[fresh_gpus_].engine_user.fill(none);
  tickets_.resize(program_.tickets);
  issued_.resize(program_.instructions.size(), -1);
  if (!work_.empty()) drain();
}

std::int64_t Engine::next_time() {
  std::uint32_t next = none;
  return find_next(next) ? key_ / 2 : never;
}

void Engine::step() {
  std::uint32_t next = none;
  if (find_next(next)) take(next);
}

void Engine::meet_partners(std::uint32_t index, std::uint32_t first, std::uint32_t last) {
  lanes_[index].missing = 1;
  ++pending_;
  meeting_.push_back(index);
  others_.partners->arrive(first, last, now_);
}

bool Engine::await_partners() {
  bool any = false;
  for (std::size_t i = 0; i < meeting_.size();) {
    const std::uint32_t index = meeting_[i];
    const Communication& call = communication(lanes_[index]);
    const bool ends = lanes_[index].state == State::finishing;
    const std::int64_t time = others_.partners->met(ends ? call.finish_first : call.first,
                                                    ends ? call.finish_last : call.last);
    if (time < 0) {
      ++i;
      continue;
    }
    meeting_[i] = meeting_.back();
    meeting_.pop_back();
    wake(index, std::max(time, now_), lanes_[index].cause);
    any = true;
  }
  return any;
}

bool Engine::idle() const {
  if (pending_ > 0 || dirty_ || !timed_.empty()) return false;
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.head == lane.size; });
}

void Engine::forget() {
  for (Lane& lane : lanes_) lane.head = lane.size = 0;
  tickets_.clear();
  issued_.clear();
}

}  // namespace maya::simulate
