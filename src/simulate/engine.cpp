#include "simulate/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace maya::simulate {

Engine::Engine(const Plan& plan, std::uint32_t rank_class, Others& others, Timeline* spans)
    : plan_(plan), model_(plan.model), program_(plan.classes[rank_class]), class_(rank_class),
      others_(others), spans_(spans), accounting_(program_.boundaries), lanes_(program_.lanes.size()),
      tickets_(program_.tickets), issued_(program_.instructions.size(), -1) {
  std::uint32_t base = 0, log = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const LaneProgram& from = program_.lanes[i];
    Lane& lane = lanes_[i];
    lane.items = from.items.data();
    lane.size = static_cast<std::uint32_t>(from.items.size());
    lane.base = base;
    lane.priority = from.priority;
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
  engine_user_.fill(none);
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
    std::int64_t time = never;
    for (std::uint32_t lane : timed_) {
      std::int64_t t = lanes_[lane].next;
      if (t < time || (t == time && lane < next)) time = t, next = lane;
    }
    if (dirty_ && time > now_) {
      key_ = 2 * now_ + 1;
      if (pending_ > 0 && key_ > others_.horizon) return key_;
      settle();
      continue;
    }
    if (next == none) return key_ = never;
    key_ = 2 * time;
    if (pending_ > 0 && key_ > others_.horizon) return key_;
    if (time > now_) {
      accounting_.advance(time);
      now_ = time;
    }
    clear_timer(next);
    switch (lanes_[next].state) {
      case State::starting: start(next); break;
      case State::meeting: begin(next); break;
      case State::running: local_end(next); break;
      case State::finishing: complete(next); break;
      default: break;
    }
    if (!work_.empty()) drain();
  }
}

// --- The device ---------------------------------------------------------------------------------

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

// Passes records and waits until the next work, which gets its time to start.
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
      if (issue > lane.ready) lane.ready = issue, lane.cause = Cause::host(class_, item.instruction);
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
  if (program_.ticket_step[index] != none) accounting_.arrive(program_.ticket_step[index], time, cause);
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
      if (time.resource == Resource::compute) {
        lane.what = Class::compute;
        begin(index);
      } else if (time.resource == Resource::free) {
        lane.what = Class::host;
        begin(index);
      } else {
        lane.what = Class::copy;
        if (time.resource == Resource::to_host && model_.engines < 2) lane.resource = Resource::to_device;
        lane.state = State::queued;
        engine_queue_[static_cast<std::size_t>(lane.resource)].push_back(index);
        dirty_ = true;
      }
    }
  }
}

void Engine::begin(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.state == State::meeting) {
    lane.started = now_;
    remove(resident_, index);
  }
  lane.state = State::running;
  lane.updated = now_;
  lane.rate = 0;
  active_.push_back(index);
  ++active_by_class_[static_cast<std::size_t>(lane.what)];
  dirty_ = true;
}

void Engine::arrive(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const Communication& call = communication(lane);
  const CommunicationTime& time = program_.communication_times[call.time];
  lane.what = Class::communication;
  lane.remaining = time.ns << one_shift;
  lane.share = time.share;
  lane.link = time.link;
  if (call.first == call.last) {
    begin(index);
    return;
  }
  lane.state = State::meeting;
  resident_.push_back(index);
  dirty_ = true;
  lane.missing = 0;
  MeetingTable::Outcome out = others_.meetings.arrive(
      call.first, call.last, class_, index, now_, lane.cause,
      [&](std::uint32_t c, std::uint32_t l, std::int64_t t, Cause cause) { others_.engines[c]->wake(l, t, cause); });
  lane.missing += out.missing;
  if (out.time > lane.ready) lane.ready = out.time, lane.cause = out.cause;
  if (lane.missing > 0) ++pending_;
  else set_timer(index, std::max(now_, out.time));
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
      remove(active_, index);
      --active_by_class_[static_cast<std::size_t>(lane.what)];
      resident_.push_back(index);
      dirty_ = true;
      lane.state = State::finishing;
      lane.missing = 0;
      Cause start_cause = lane.cause;
      lane.ready = now_;
      MeetingTable::Outcome out = others_.meetings.arrive(
          call.finish_first, call.finish_last, class_, index, now_, start_cause,
          [&](std::uint32_t c, std::uint32_t l, std::int64_t t, Cause cause) { others_.engines[c]->wake(l, t, cause); });
      lane.missing += out.missing;
      lane.ready = std::max(lane.ready, out.time);
      if (lane.missing > 0) ++pending_;
      else set_timer(index, std::max(now_, out.time));
      return;
    }
  }
  complete(index);
}

void Engine::complete(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.state == State::finishing) {
    remove(resident_, index);
  } else {
    remove(active_, index);
    --active_by_class_[static_cast<std::size_t>(lane.what)];
  }
  dirty_ = true;
  keep(lane);
  Cause self = Cause::item(class_, lane.base + lane.head);
  if (lane.what == Class::copy) {
    auto engine = static_cast<std::size_t>(lane.resource);
    engine_user_[engine] = none;
    engine_freed_[engine] = self;
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
  if (active_by_class_[static_cast<std::size_t>(Class::compute)] > 0) activity |= Accounting::compute;
  if (active_by_class_[static_cast<std::size_t>(Class::communication)] > 0 || !resident_.empty())
    activity |= Accounting::communication;
  if (active_by_class_[static_cast<std::size_t>(Class::copy)] > 0) activity |= Accounting::copy;
  accounting_.set(activity);
}

// Kernels take SMs in order of priority, then start; what is left goes to the next. Communication takes
// its SMs first. Transfers slow kernels further, and kernels slow transfers; collectives over the same
// links divide them.
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
    std::int64_t ns = rate == one ? (lane.remaining + one - 1) >> one_shift
                                  : (lane.remaining + rate - 1) / rate;
    set_timer(index, now_ + std::max<std::int64_t>(ns, 0));
  };
  if (active_.size() == 1 && resident_.empty()) {
    finish(active_[0], lanes_[active_[0]], one);
    return;
  }
  if (active_.empty()) return;
  const std::uint32_t computing = active_by_class_[static_cast<std::size_t>(Class::compute)];
  const std::uint32_t transferring = active_by_class_[static_cast<std::size_t>(Class::communication)];
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

// --- Hosts ----------------------------------------------------------------------------------------

void Engine::make_runnable(std::uint32_t thread) {
  if (threads_[thread].runnable) return;
  threads_[thread].runnable = true;
  runnable_.push_back(thread);
}

void Engine::run_hosts() {
  while (!runnable_.empty()) {
    std::uint32_t thread = runnable_.back();
    runnable_.pop_back();
    threads_[thread].runnable = false;
    run_thread(thread);
  }
}

void Engine::end_of_step(std::uint32_t instruction, std::int64_t time) {
  const auto& boundaries = program_.boundaries;
  auto it = std::lower_bound(boundaries.begin(), boundaries.end(), instruction,
                             [](const StepProgram& s, std::uint32_t i) { return s.host == none || s.host < i; });
  for (; it != boundaries.end() && it->host == instruction; ++it)
    accounting_.arrive(static_cast<std::uint32_t>(it - boundaries.begin()), time, Cause::host(class_, instruction));
}

// Runs a thread until it blocks; false when it has.
bool Engine::run_thread(std::uint32_t number) {
  HostThread& t = threads_[number];
  while (t.at != none) {
    const std::uint32_t at = t.at;
    const Instruction& in = program_.instructions[at];
    if (t.phase == Phase::resume) --resume_waiters_;
    if (t.phase == Phase::start || t.phase == Phase::resume) {
      t.start_cause = t.queue_cause = t.end_cause = {};
      t.start = t.time;
      if (in.resumed) {
        if (issued_[at - 1] < 0) {
          t.phase = Phase::resume;
          ++resume_waiters_;
          return false;
        }
        if (issued_[at - 1] > t.start) {
          t.start = issued_[at - 1];
          t.start_cause = Cause::host(class_, at - 1);
        }
      }
      t.time = t.start + in.cpu_ns;
      t.phase = Phase::queue;
    }
    if (t.phase == Phase::queue) {
      if (in.queue_place != none && in.queue_place >= model_.queue_depth) {
        Lane& lane = lanes_[in.lane_list ? program_.lane_lists[in.lane + 1] : in.lane];
        if (lane.closed + model_.queue_depth <= in.queue_place) {
          lane.queue_waiters = true;
          t.queue_time = -1;
          return false;
        }
        if (t.queue_time == -1) {   // it had been full
          t.queue_time = 0;
          if (now_ > t.time) t.time = now_, t.queue_time = now_;
          else t.queue_cause = {};
        }
      }
      t.time += in.call_ns;
      t.phase = Phase::wait;
      t.wait_index = in.waits_begin;
      if (spans_ != nullptr)
        spans_->host_spans.push_back({class_, program_.threads[number].id, in.record, t.start, t.time, false});
      issue(at, t.time);
    }
    while (t.wait_index < in.waits_end) {
      std::uint32_t index = program_.waits[t.wait_index];
      Ticket& ticket = tickets_[index];
      if (ticket.done < 0) {
        t.waiter_next = ticket.waiter;
        ticket.waiter = number | thread_bit;
        return false;
      }
      if (ticket.done > t.time) t.time = ticket.done, t.end_cause = ticket.cause;
      ++t.wait_index;
    }
    if (spans_ != nullptr && t.time > issued_[at])
      spans_->host_spans.push_back({class_, program_.threads[number].id, in.record, issued_[at], t.time, true});
    if (at - program_.log_begin < host_log_.size())
      host_log_[at - program_.log_begin] = {t.start, issued_[at], t.time, t.start_cause, t.queue_cause,
                                            t.queue_time, t.end_cause};
    if (in.ends_step) end_of_step(at, t.time);
    t.at = in.next;
    t.phase = Phase::start;
  }
  t.phase = Phase::finished;
  return true;
}

void Engine::issue(std::uint32_t instruction, std::int64_t time) {
  issued_[instruction] = time;
  const Instruction& in = program_.instructions[instruction];
  auto poke = [&](std::uint32_t index) {
    const Lane& lane = lanes_[index];
    if (lane.state == State::idle && lane.head < lane.size && lane.items[lane.head].instruction == instruction)
      work_.push_back(index);
  };
  if (in.lane_list) {
    const std::uint32_t* list = program_.lane_lists.data() + in.lane;
    for (std::uint32_t i = 1; i <= list[0]; ++i) poke(list[i]);
  } else if (in.lane != none) {
    poke(in.lane);
  }
  if (!work_.empty()) drain();
  if (resume_waiters_ > 0)
    for (std::uint32_t t = 0; t < threads_.size(); ++t)
      if (threads_[t].phase == Phase::resume && threads_[t].at == instruction + 1) make_runnable(t);
}

// --- Afterwards -----------------------------------------------------------------------------------

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

std::string Engine::stuck() const {
  for (const Lane& lane : lanes_)
    if (lane.head < lane.size && (lane.state == State::meeting || lane.state == State::finishing)) {
      const Communication& call = communication(lane);
      return fmt::format("record {} (communicator {}, op {}) waits for its partners", call.record, call.slot, call.op);
    }
  for (const HostThread& t : threads_)
    if (t.at != none)
      return fmt::format("the host waits at record {}", program_.instructions[t.at].record);
  return "a stream waits";
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
  return at.index - lane.log_begin < lane.log_count ? lane.log_offset + at.index - lane.log_begin : none;
}

}  // namespace maya::simulate
