#include "simulate/engine.h"

#include <algorithm>
#include <tuple>

namespace maya::simulate {

Engine::Engine(const Plan& plan, const Program& program, std::uint32_t rank_class, Others& others,
               Timeline* spans)
    : plan_(plan),
      model_(plan.model),
      program_(program),
      class_(rank_class),
      others_(others),
      spans_(spans),
      accounting_(program_.boundaries),
      lanes_(program_.lanes.size()),
      tickets_(program_.tickets),
      issued_(program_.instructions.size(), -1),
      link_shares_(program_.communication_times, plan.port_capacity) {
  std::uint32_t base = 0, log = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const LaneProgram& from = program_.lanes[i];
    Lane& lane = lanes_[i];
    lane.items = from.items.data();
    lane.size = static_cast<std::uint32_t>(from.items.size());
    lane.base = base;
    lane.priority = from.priority;
    lane.device = from.device;
    base += lane.size;
    if (plan.log_step >= 0) {
      lane.log_begin = from.log_begin;
      lane.log_count = from.log_end - from.log_begin;
      lane.log_offset = log;
      log += lane.log_count;
    }
  }
  item_log_.resize(log);
  if (plan.log_step >= 0) host_log_.resize(program_.log_end - program_.log_begin);
  gpus_.resize(program_.devices);
  for (; fresh_gpus_ < gpus_.size(); ++fresh_gpus_) gpus_[fresh_gpus_].engine_user.fill(none);
  for (const Thread& thread : program_.threads) {
    HostThread& t = threads_.emplace_back();
    t.at = thread.first;
    make_runnable(static_cast<std::uint32_t>(threads_.size() - 1));
  }
}

std::int64_t Engine::run() {
  for (;;) {
    if (!runnable_.empty()) run_hosts();
    std::uint32_t next = none;
    if (!find_next(next)) return key_ = never;
    if (pending_ > 0 && key_ > others_.horizon) return key_;
    take(next);
  }
}

// Finds the next event: that of a lane, or none for the settling phase of this nanosecond.
bool Engine::find_next(std::uint32_t& next) {
  next = none;
  std::int64_t time = never;
  for (std::uint32_t lane : timed_) {
    std::int64_t t = lanes_[lane].next;
    if (t < time || (t == time && lane < next)) time = t, next = lane;
  }
  if (dirty_ && time > now_) {
    key_ = 2 * now_ + 1;
    next = none;
    return true;
  }
  key_ = 2 * time;
  return next != none;
}

void Engine::take(std::uint32_t next) {
  if (next == none) {
    settle();
    return;
  }
  if (std::int64_t time = lanes_[next].next; time > now_) {
    accounting_.advance(time);
    now_ = time;
  }
  clear_timer(next);
  switch (lanes_[next].state) {
    case State::starting:
      start(next);
      break;
    case State::meeting:
      begin(next);
      break;
    case State::running:
      local_end(next);
      break;
    case State::finishing:
      complete(next);
      break;
    default:
      break;
  }
  if (!work_.empty()) drain();
}

void Engine::set_timer(std::uint32_t index, std::int64_t time) {
  Lane& lane = lanes_[index];
  lane.next = time;
  if (lane.timer == none) {
    lane.timer = static_cast<std::uint32_t>(timed_.size());
    timed_.push_back(index);
  }
}

void Engine::clear_timer(std::uint32_t index) {
  Lane& lane = lanes_[index];
  lane.next = never;
  if (lane.timer == none) return;
  std::uint32_t last = timed_.back();
  timed_[lane.timer] = last;
  lanes_[last].timer = lane.timer;
  timed_.pop_back();
  lane.timer = none;
}

void Engine::remove(std::vector<std::uint32_t>& set, std::uint32_t lane) {
  auto it = std::find(set.begin(), set.end(), lane);
  if (it == set.end()) return;
  *it = set.back();
  set.pop_back();
}

void Engine::drain() {
  while (!work_.empty()) {
    std::uint32_t lane = work_.back();
    work_.pop_back();
    advance(lane);
  }
}

// Processes records and waits up to the next work and sets its start time.
void Engine::advance(std::uint32_t index) {
  Lane& lane = lanes_[index];
  lane.state = State::idle;
  for (; lane.head < lane.size; ++lane.head) {
    const Item& item = lane.items[lane.head];
    std::int64_t issue = issued_[item.instruction];
    if (issue < 0) return;
    if (item.kind == ItemKind::wait) {
      Ticket& ticket = tickets_[item.index];
      if (ticket.done < 0) {
        lane.state = State::waiting_ticket;
        lane.waiter_next = ticket.waiter;
        ticket.waiter = index;
        return;
      }
      if (ticket.done > lane.ready) lane.ready = ticket.done, lane.cause = ticket.cause;
    }
    if (item.kind == ItemKind::record || item.kind == ItemKind::wait) {
      if (issue > lane.ready)
        lane.ready = issue, lane.cause = Cause::host(class_, item.instruction);
      if (item.kind == ItemKind::record) complete_ticket(item.index, lane.ready, lane.cause);
      continue;
    }
    lane.dependency = lane.ready;
    if (issue > lane.ready) lane.ready = issue, lane.cause = Cause::host(class_, item.instruction);
    lane.state = State::starting;
    set_timer(index, lane.ready + (item.in_graph ? model_.graph_gap_ns : model_.launch_gap_ns));
    return;
  }
  lane.state = State::done;
}

void Engine::complete_ticket(std::uint32_t index, std::int64_t time, Cause cause) {
  Ticket& ticket = tickets_[index];
  ticket.done = time;
  ticket.cause = cause;
  for (std::uint32_t w = ticket.waiter; w != none;) {
    if (w & thread_bit) {
      HostThread& thread = threads_[w & ~thread_bit];
      make_runnable(w & ~thread_bit);
      w = thread.waiter_next;
    } else {
      work_.push_back(w);
      w = lanes_[w].waiter_next;
    }
  }
  ticket.waiter = none;
  if (program_.ticket_step[index] != none)
    accounting_.arrive(program_.ticket_step[index], time, cause);
}

void Engine::start(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const Item& item = lane.items[lane.head];
  lane.started = now_;
  accounting_.start_after_host(lane.dependency, issued_[item.instruction]);
  switch (item.kind) {
    case ItemKind::communication:
      arrive(index);
      return;
    case ItemKind::host_function:
      lane.what = Class::host;
      lane.remaining = model_.callback_ns << one_shift;
      begin(index);
      return;
    default: {
      const WorkTime& time = program_.times[item.index];
      lane.remaining = time.ns << one_shift;
      lane.share = time.share;
      lane.resource = time.resource;
      lane.memory_bound = time.memory_bound;
      lane.blocks = time.blocks;
      if (time.resource == Resource::compute) {
        lane.what = Class::compute;
        begin(index);
      } else if (time.resource == Resource::free) {
        lane.what = Class::host;
        begin(index);
      } else {
        lane.what = Class::copy;
        if (time.resource == Resource::to_host && model_.engines < 2)
          lane.resource = Resource::to_device;
        lane.state = State::queued;
        gpu_of(lane).engine_queue[static_cast<std::size_t>(lane.resource)].push_back(index);
        touch(gpu_of(lane));
      }
    }
  }
}

void Engine::begin(std::uint32_t index) {
  Lane& lane = lanes_[index];
  Gpu& gpu = gpu_of(lane);
  if (lane.state == State::meeting) {
    lane.started = now_;
    remove(gpu.resident, index);
  }
  lane.state = State::running;
  lane.updated = now_;
  lane.rate = 0;
  gpu.active.push_back(index);
  ++gpu.active_by_class[static_cast<std::size_t>(lane.what)];
  touch(gpu);
}

void Engine::arrive(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const Communication& call = communication(lane);
  const CommunicationTime& time = program_.communication_times[call.time];
  lane.what = Class::communication;
  lane.remaining = time.ns << one_shift;
  lane.share = time.share;
  if (call.first == call.last) {
    begin(index);
    return;
  }
  lane.state = State::meeting;
  gpu_of(lane).resident.push_back(index);
  touch(gpu_of(lane));
  lane.missing = 0;
  if (others_.partners != nullptr) return meet_partners(index, call.first, call.last);
  MeetingTable::Outcome out =
      others_.meetings->arrive(call.first, call.last, class_, index, now_, lane.cause,
                               [&](std::uint32_t c, std::uint32_t l, std::int64_t t, Cause cause) {
                                 others_.engines[c]->wake(l, t, cause);
                               });
  lane.missing += out.missing;
  if (out.time > lane.ready) lane.ready = out.time, lane.cause = out.cause;
  if (lane.missing > 0)
    ++pending_;
  else
    set_timer(index, std::max(now_, out.time));
}

void Engine::wake(std::uint32_t index, std::int64_t time, Cause cause) {
  Lane& lane = lanes_[index];
  if (time > lane.ready) lane.ready = time, lane.cause = cause;
  if (--lane.missing > 0) return;
  --pending_;
  std::int64_t at = std::max(time, lane.ready);
  set_timer(index, at);
  if (class_ == others_.running) return;
  key_ = std::min(key_, 2 * at);
  others_.horizon = std::min(others_.horizon, key_);
  others_.woken.push_back(class_);
}

void Engine::local_end(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.what == Class::communication) {
    const Communication& call = communication(lane);
    if (call.finish_first != call.finish_last) {
      Gpu& gpu = gpu_of(lane);
      remove(gpu.active, index);
      --gpu.active_by_class[static_cast<std::size_t>(lane.what)];
      gpu.resident.push_back(index);
      touch(gpu);
      lane.state = State::finishing;
      lane.missing = 0;
      Cause start_cause = lane.cause;
      lane.ready = now_;
      if (others_.partners != nullptr)
        return meet_partners(index, call.finish_first, call.finish_last);
      MeetingTable::Outcome out = others_.meetings->arrive(
          call.finish_first, call.finish_last, class_, index, now_, start_cause,
          [&](std::uint32_t c, std::uint32_t l, std::int64_t t, Cause cause) {
            others_.engines[c]->wake(l, t, cause);
          });
      lane.missing += out.missing;
      lane.ready = std::max(lane.ready, out.time);
      if (lane.missing > 0)
        ++pending_;
      else
        set_timer(index, std::max(now_, out.time));
      return;
    }
  }
  complete(index);
}

void Engine::complete(std::uint32_t index) {
  Lane& lane = lanes_[index];
  Gpu& gpu = gpu_of(lane);
  if (lane.state == State::finishing) {
    remove(gpu.resident, index);
  } else {
    remove(gpu.active, index);
    --gpu.active_by_class[static_cast<std::size_t>(lane.what)];
  }
  touch(gpu);
  keep(lane);
  Cause self = Cause::item(class_, lane.base + lane.head);
  if (lane.what == Class::copy) {
    auto engine = static_cast<std::size_t>(lane.resource);
    gpu.engine_user[engine] = none;
    gpu.engine_freed[engine] = self;
  }
  if (lane.items[lane.head].closes) {
    ++lane.closed;
    if (lane.queue_waiters) {
      lane.queue_waiters = false;
      for (std::uint32_t t = 0; t < threads_.size(); ++t)
        if (threads_[t].phase == Phase::queue && !threads_[t].runnable) {
          threads_[t].queue_cause = self;
          make_runnable(t);
        }
    }
  }
  lane.ready = now_;
  lane.cause = self;
  ++lane.head;
  work_.push_back(index);
}

void Engine::keep(const Lane& lane) {
  if (lane.head - lane.log_begin < lane.log_count)
    item_log_[lane.log_offset + lane.head - lane.log_begin] = {lane.started, now_, lane.cause};
  if (spans_ == nullptr) return;
  const Item& item = lane.items[lane.head];
  Span s;
  s.rank_class = class_;
  s.stream = program_.lanes[static_cast<std::size_t>(&lane - lanes_.data())].stream;
  s.record = program_.instructions[item.instruction].record;
  s.op = item.index;
  if (item.kind == ItemKind::communication) {
    const Communication& call = program_.communications[item.index];
    s.communicator = call.slot;
    s.op = call.op;
    s.record = call.record;
    s.collective = call.number;
  } else if (item.kind == ItemKind::host_function) {
    s.op = none;
  }
  s.issue_ns = issued_[item.instruction];
  s.start_ns = lane.started;
  s.end_ns = now_;
  spans_->spans.push_back(s);
}

bool Engine::finished() const {
  for (const HostThread& t : threads_)
    if (t.at != none) return false;
  for (const Lane& lane : lanes_)
    if (lane.head < lane.size) return false;
  return true;
}

std::int64_t Engine::end() const {
  std::int64_t end = now_;
  for (const HostThread& t : threads_) end = std::max(end, t.time);
  return end;
}

Engine::ItemPlace Engine::place(std::uint32_t item) const {
  auto it = std::upper_bound(lanes_.begin(), lanes_.end(), item,
                             [](std::uint32_t i, const Lane& lane) { return i < lane.base; });
  --it;
  return {static_cast<std::uint32_t>(it - lanes_.begin()), item - it->base};
}

std::uint32_t Engine::log_place(std::uint32_t item) const {
  ItemPlace at = place(item);
  const Lane& lane = lanes_[at.lane];
  return at.index - lane.log_begin < lane.log_count ? lane.log_offset + at.index - lane.log_begin
                                                    : none;
}

}  // namespace maya::simulate
