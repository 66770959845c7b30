// The host side of a class: threads that run ahead of the device until they block.
#include <algorithm>

#include "simulate/engine.h"

namespace maya::simulate {

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
  auto it = std::lower_bound(
      boundaries.begin(), boundaries.end(), instruction,
      [](const StepProgram& s, std::uint32_t i) { return s.host == none || s.host < i; });
  for (; it != boundaries.end() && it->host == instruction; ++it)
    accounting_.arrive(static_cast<std::uint32_t>(it - boundaries.begin()), time,
                       Cause::host(class_, instruction));
}

// Runs a thread until it blocks. Returns false if it is blocked.
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
        if (t.queue_time == -1) {  // the queue was full
          t.queue_time = 0;
          if (now_ > t.time)
            t.time = now_, t.queue_time = now_;
          else
            t.queue_cause = {};
        }
      }
      t.time += in.call_ns;
      t.phase = Phase::wait;
      t.wait_index = in.waits_begin;
      if (spans_ != nullptr)
        spans_->host_spans.push_back(
            {class_, program_.threads[number].id, in.record, t.start, t.time, false});
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
      spans_->host_spans.push_back(
          {class_, program_.threads[number].id, in.record, issued_[at], t.time, true});
    if (at - program_.log_begin < host_log_.size())
      host_log_[at - program_.log_begin] = {t.start,       issued_[at],  t.time,     t.start_cause,
                                            t.queue_cause, t.queue_time, t.end_cause};
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
    if (lane.state == State::idle && lane.head < lane.size &&
        lane.items[lane.head].instruction == instruction)
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

}  // namespace maya::simulate
