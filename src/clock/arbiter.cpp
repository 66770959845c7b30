#include "clock/arbiter.h"

#include <algorithm>

#include "clock/system_call.h"

namespace maya::clock {
namespace {

constexpr std::uint32_t nobody = 0xffffffff;
constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t soon = 2'000;  // after what it asks for may have happened, who spins asks

bool runs(State state) { return state == State::running || state == State::woken; }

bool has_helper(Waits waits) { return waits == Waits::in_kernel || waits == Waits::for_lock; }

}  // namespace

Arbiter::Arbiter(Domain& domain) : domain_(domain), last_progress_(real_ns()) {
  domain_.header().arbiter_beat = real_ns();
}

void Arbiter::run(const std::atomic<bool>& stop) {
  std::int64_t rest = 20'000;
  while (!stop.load()) {
    const std::uint32_t bell = domain_.header().bell.load();
    domain_.header().arbiter_beat = real_ns();
    if (step()) {
      rest = 20'000;
      continue;
    }
    bool waits = false;
    for (std::uint32_t i = 0; i < domain_.places() && !waits; ++i)
      waits = domain_.place(i).state.load() == State::waiting;
    if (!waits) last_progress_ = real_ns();
    // Somebody works before the earliest deadline: look again, less often the longer it takes. A
    // new wait does not hurry us: whoever began it sleeps now, and that is seen at the next look.
    if (waits)
      pause_ns(rest);
    else
      futex_wait(domain_.header().bell, bell, 500 * millisecond);
    rest = waits ? std::min<std::int64_t>(rest * 3 / 2, millisecond) : 20'000;
  }
}

// What one thread means for a jump to `deadline`.
Arbiter::Finding Arbiter::examine(std::uint32_t index, std::int64_t deadline) {
  Place& place = domain_.place(index);
  Known& known = known_[index];
  known.looked = false;
  if (runs(place.state.load()) && place.time.load() >= deadline) return Finding::later;
  const std::int32_t thread = place.thread.load();
  if (thread == 0) {  // about to be made: as long as its process lives
    if (kernel_.turns(index, place.process.load(), place.process.load()) != 0)
      return Finding::earlier;
    domain_.leave(place);
    return Finding::gone;
  }
  const Sight sight = kernel_.look(index, place.process.load(), thread);
  // What it says of itself is read after the look: if it sleeps and has had no turn when all are
  // looked at once more (unchanged), then it said this before it went to sleep.
  const State state = place.state.load();
  const std::int64_t time = place.time.load();
  // It began to wait after the earliest deadline was looked for.
  if (state == State::waiting && place.deadline.load() < deadline &&
      place.waits.load() != Waits::spinning)
    return Finding::earlier;
  if (state == State::called && sight.what != Sight::What::gone) {
    if (place.waits.load() != Waits::for_lock || sight.turns == known.called_turns)
      return Finding::earlier;  // it says itself when it goes on
    // It has been woken. If it sleeps again, it is for the lock.
    State called = State::called;
    place.state.compare_exchange_strong(called, State::running);
    return time >= deadline ? Finding::later : Finding::earlier;
  }
  known.turns = sight.turns, known.looked = true;
  switch (sight.what) {
    case Sight::What::gone:
      domain_.leave(place);
      known.looked = false;
      return Finding::gone;
    case Sight::What::stopped:
      return Finding::stopped;
    case Sight::What::asleep: {
      // Woken later, it goes on at the time the others have reached by then.
      State as_seen = state;
      if (!runs(state)) return Finding::asleep;
      if (!place.state.compare_exchange_strong(as_seen, State::blocked)) return Finding::earlier;
      domain_.acted(std::max(time, domain_.now()));
      return Finding::asleep;
    }
    case Sight::What::at_work:
      break;
  }
  if (state == State::blocked) {
    State blocked = State::blocked;
    place.time.store(std::max(time, domain_.now()));
    place.state.compare_exchange_strong(blocked, State::woken);
  }
  if (!runs(state)) return Finding::earlier;  // woken: it will act
  // It works without a word to us: its time goes on with the processor time it uses.
  if (known.time != time) known.time = time, known.cpu_ns = sight.cpu_ns;
  const auto used = static_cast<double>(sight.cpu_ns - known.cpu_ns) * domain_.scale();
  return time + static_cast<std::int64_t>(used) >= deadline ? Finding::later : Finding::earlier;
}

// Nobody has run since we looked at him: what we saw one after the other was true at one time.
bool Arbiter::unchanged() {
  for (std::uint32_t i = 0; i < known_.size(); ++i) {
    if (!known_[i].looked) continue;
    const Place& place = domain_.place(i);
    if (place.state.load() == State::free) return false;
    if (kernel_.turns(i, place.process.load(), place.thread.load()) != known_[i].turns)
      return false;
  }
  return true;
}

void Arbiter::end_wait(std::uint32_t index, bool forced) {
  Place& place = domain_.place(index);
  domain_.reached(place.deadline.load());
  place.time.store(place.deadline.load());
  State waiting = State::waiting;
  const bool by_helper = has_helper(place.waits.load());
  if (place.waits.load() == Waits::for_device) hurry_spinners(place.deadline.load());
  known_[index].called_turns = known_[index].turns;
  if (!place.state.compare_exchange_strong(waiting, by_helper ? State::called : State::running))
    return;
  // Counted before the thread goes on: it may look.
  ++domain_.header().waits_ended;
  if (forced) ++domain_.header().waits_forced;
  place.word.fetch_add(1);
  futex_wake(place.word);
  if (by_helper) {
    Member& member = domain_.member(place);
    member.word.fetch_add(1);
    futex_wake(member.word);
  }
  last_progress_ = real_ns();
}

void Arbiter::hurry_spinners(std::int64_t time) {
  domain_.header().device_done = time;
  for (std::uint32_t i = 0; i < known_.size(); ++i) {
    Place& place = domain_.place(i);
    // Should it go on by itself meanwhile, it only asks once more.
    if (place.state.load() == State::waiting && place.waits.load() == Waits::spinning)
      place.deadline.store(time + soon);
  }
}

bool Arbiter::step() {
  // Whoever joins while we look is not looked at: then all is looked at again.
  const std::uint32_t joins = domain_.joins();
  const std::uint32_t count = domain_.places();
  known_.resize(std::max<std::size_t>(known_.size(), count));
  std::uint32_t first = nobody, spinner = nobody;
  std::int64_t deadline = INT64_MAX, reached = INT64_MAX, asks = INT64_MAX;
  const std::int64_t acted = domain_.header().acted.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    Place& place = domain_.place(i);
    const State state = place.state.load();
    known_[i].looked = false;
    std::int64_t until = place.deadline.load();
    const bool spins = state == State::waiting && place.waits.load() == Waits::spinning;
    // Somebody has acted since it asked: it asks once more, even if all others wait for a device.
    const bool hurried = spins && acted > place.time.load();
    if (hurried && acted + soon < until) place.deadline.store(until = acted + soon);
    if (spins && !hurried) {
      if (until < asks) asks = until, spinner = i;
    } else if (state == State::waiting && until < deadline) {
      deadline = until, first = i;
    }
    if (runs(state)) reached = std::min(reached, place.time.load());
  }
  const bool device = first != nobody && domain_.place(first).waits.load() == Waits::for_device;
  if (asks < deadline && !device) deadline = asks, first = spinner;
  if (first == nobody) return false;
  bool held = false;
  std::int64_t cpu = 0;
  auto look = [&](std::uint32_t i) {
    const State state = domain_.place(i).state.load();
    if (state == State::free) {
      // Somebody who was killed before his place was whole.
      if (domain_.place(i).process.load() != 0 &&
          kernel_.turns(i, domain_.place(i).process.load(), domain_.place(i).process.load()) == 0)
        domain_.leave(domain_.place(i));
      return true;
    }
    const Finding finding = examine(i, deadline);
    if (finding != Finding::earlier && finding != Finding::stopped) return true;
    hindrance_ = i;
    held = true;
    return false;
  };
  if (hindrance_ < count) look(hindrance_);
  for (std::uint32_t i = 0; i < count && !held; ++i) look(i);
  // A wait may have ended and another one begun since its deadline was read.
  const Place& earliest = domain_.place(first);
  if (!held && joins == domain_.joins() && unchanged() && earliest.state.load() == State::waiting &&
      earliest.deadline.load() == deadline) {
    hindrance_ = nobody;
    end_wait(first, false);
    return true;
  }
  if (reached != INT64_MAX && reached <= deadline) domain_.reached(reached);
  // Whoever holds time back is at work, or nothing happens at all.
  if (held) {
    const Place& place = domain_.place(hindrance_);
    const Sight sight = kernel_.look(hindrance_, place.process.load(), place.thread.load());
    cpu = sight.cpu_ns + place.time.load() + hindrance_;
    if (cpu != seen_cpu_) seen_cpu_ = cpu, last_progress_ = real_ns();
  }
  if (real_ns() - last_progress_ > patience_ns_) {
    end_wait(first, true);
    return true;
  }
  return false;
}

}  // namespace maya::clock
