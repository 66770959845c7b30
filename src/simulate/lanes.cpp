#include "simulate/lanes.h"

#include <algorithm>

namespace maya::simulate {

Lanes::Stream& Lanes::stream(std::uint16_t id) {
  if (id >= streams_.size()) streams_.resize(id + 1u);
  return streams_[id];
}

void Lanes::create_stream(const trace::Record& r) {
  stream(r.stream) = {none, r.aux == 0 ? 0 : static_cast<std::int32_t>(r.aux) - 1000,
                      (r.flags & trace::non_blocking) != 0, (r.flags & trace::legacy) != 0,
                      r.value};
}

// Devices are numbered in order of first use. Streams without a stream_create record are on the
// first device.
std::uint16_t Lanes::device_of(std::uint32_t recorded) {
  if (recorded == none) return 0;
  auto [it, fresh] = numbers_.try_emplace(recorded, static_cast<std::uint16_t>(numbers_.size()));
  if (fresh && it->second >= devices_.size()) devices_.emplace_back();
  return it->second;
}

std::uint32_t Lanes::new_lane(std::uint16_t stream, std::uint16_t device, std::int32_t priority,
                              bool blocking) {
  program_.lanes.push_back({{}, stream, device, priority});
  program_.devices = std::max<std::uint32_t>(program_.devices, device + 1u);
  Lane& lane = lanes_.emplace_back();
  lane.blocking = blocking;
  lane.device = device;
  auto index = static_cast<std::uint32_t>(lanes_.size() - 1);
  if (blocking) devices_[device].blocking.push_back(index);
  return index;
}

// Stream ids depend on the process. The legacy default stream is identified by its flag.
std::uint32_t Lanes::of_stream(std::uint16_t id, std::uint8_t flags) {
  Stream& s = stream(id);
  s.legacy |= (flags & trace::legacy) != 0;
  if (s.lane == none) {
    // The id of a default stream is the number of its device.
    const std::uint32_t device = s.device == none && s.legacy ? id : s.device;
    s.lane = new_lane(id, device_of(device), s.priority, !s.legacy && !s.non_blocking);
  }
  return s.lane;
}

std::uint32_t Lanes::enter(std::uint16_t id, std::uint8_t flags) {
  std::uint32_t lane = of_stream(id, flags);
  Device& device = devices_[lanes_[lane].device];
  if (flags & trace::legacy) {
    device.legacy_lane = lane;
    ++device.legacy_epoch;
    for (std::uint32_t other : device.blocking)
      if (other != lane && lanes_[other].before_legacy) {
        std::uint32_t ticket = tail(other);
        if (ticket != none) wait_on(lane, ticket);
        lanes_[other].before_legacy = false;
      }
  } else if (lanes_[lane].blocking && device.legacy_lane != none &&
             lanes_[lane].seen_legacy != device.legacy_epoch) {
    lanes_[lane].seen_legacy = device.legacy_epoch;
    std::uint32_t ticket = tail(device.legacy_lane);
    if (ticket != none) wait_on(lane, ticket);
  }
  return lane;
}

std::uint32_t Lanes::chain(std::uint32_t lane, std::uint32_t n) {
  while (lanes_[lane].chains.size() < n) {
    const LaneProgram& of = program_.lanes[lane];
    std::uint32_t made = new_lane(of.stream, lanes_[lane].device, of.priority, false);
    lanes_[lane].chains.push_back(made);
  }
  return lanes_[lane].chains[n - 1];
}

std::uint32_t Lanes::new_ticket() {
  program_.ticket_step.push_back(none);
  return program_.tickets++;
}

std::uint32_t Lanes::tail(std::uint32_t lane) {
  Lane& l = lanes_[lane];
  if (l.tail != none) return l.tail;
  auto& items = program_.lanes[lane].items;
  if (items.empty()) return none;
  std::uint32_t ticket = new_ticket();
  items.push_back({items.back().instruction, ticket, ItemKind::record});
  l.tail = ticket;
  l.synced_by = none;
  return ticket;
}

void Lanes::push(std::uint32_t lane, Item item) {
  program_.lanes[lane].items.push_back(item);
  Lane& l = lanes_[lane];
  l.tail = none;
  if (!l.in_step) in_step_.push_back(lane);
  l.in_step = true;
  l.before_legacy = true;
}

void Lanes::record(std::uint32_t lane, std::uint32_t ticket) {
  push(lane, {current(), ticket, ItemKind::record});
  lanes_[lane].tail = ticket;
  lanes_[lane].synced_by = none;
  also(lane);
}

void Lanes::wait_on(std::uint32_t lane, std::uint32_t ticket) {
  push(lane, {current(), ticket, ItemKind::wait});
  also(lane);
}

void Lanes::submit(std::uint32_t lane, Item item) {
  also(lane);
  if (instruction().queue_place == none) instruction().queue_place = lanes_[lane].submissions;
  ++lanes_[lane].submissions;
  item.closes = true;
  push(lane, item);
  ++program_.works;
}

void Lanes::also(std::uint32_t lane) {
  Instruction& in = instruction();
  if (in.lane == none) {
    in.lane = lane;
    return;
  }
  if (!in.lane_list) {
    if (in.lane == lane) return;
    auto at = static_cast<std::uint32_t>(program_.lane_lists.size());
    program_.lane_lists.push_back(1);
    program_.lane_lists.push_back(in.lane);
    in.lane = at, in.lane_list = true;
  }
  auto* list = program_.lane_lists.data() + in.lane;
  if (std::find(list + 1, list + 1 + list[0], lane) != list + 1 + list[0]) return;
  ++list[0];
  program_.lane_lists.push_back(lane);
}

void Lanes::host_waits(std::uint32_t ticket) {
  if (ticket == none) return;
  program_.waits.push_back(ticket);
  instruction().waits_end = static_cast<std::uint32_t>(program_.waits.size());
}

void Lanes::host_waits_for_blocking_streams_of(std::uint32_t lane) {
  for (std::uint32_t other : devices_[lanes_[lane].device].blocking) host_waits(tail(other));
}

void Lanes::host_waits_for_device(std::uint32_t device) {
  std::uint32_t only = none;
  if (device != 0) {
    auto known = numbers_.find(device - 1);
    if (known == numbers_.end()) return;  // nothing was issued to it
    only = known->second;
  }
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (only != none && lanes_[lane].device != only) continue;
    std::uint32_t ticket = tail(lane);
    if (ticket == none || lanes_[lane].synced_by == instruction().thread) continue;
    lanes_[lane].synced_by = instruction().thread;
    host_waits(ticket);
  }
}

void Lanes::forget() {
  for (Lane& lane : lanes_) {
    lane.tail = lane.synced_by = none;
    lane.before_legacy = lane.in_step = false;
  }
  in_step_.clear();
}

std::uint32_t Lanes::close_step(std::uint32_t boundary) {
  std::uint32_t count = 0;
  // In the order of the lanes. Lanes without work are skipped, because there may be as many lanes
  // as steps.
  std::sort(in_step_.begin(), in_step_.end());
  for (std::uint32_t lane : in_step_) {
    lanes_[lane].in_step = false;
    std::uint32_t ticket = tail(lane);
    if (program_.ticket_step[ticket] != none) continue;
    program_.ticket_step[ticket] = boundary;
    ++count;
  }
  in_step_.clear();
  return count;
}

}  // namespace maya::simulate
