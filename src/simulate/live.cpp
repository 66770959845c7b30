#include "simulate/live.h"

#include <algorithm>

#include "simulate/communication_times.h"

namespace maya::simulate {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);
}

// Keys of the board.
std::uint64_t clock_key(std::int32_t rank) {
  return mix(0x636c6f636bULL, static_cast<std::uint32_t>(rank));
}
// Under this key a process that waits for partners posts the time of its next event; -2: it does
// not wait.
std::uint64_t waits_key(std::int32_t rank) {
  return mix(0x7761697473ULL, static_cast<std::uint32_t>(rank));
}
std::uint64_t member_key(std::uint64_t id, std::int32_t member, std::uint8_t phase) {
  return mix(mix(id, static_cast<std::uint32_t>(member)), phase);
}
std::uint64_t message_key(std::uint64_t id, std::int32_t from, std::int32_t to, bool sender) {
  const auto pair = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 |
                    static_cast<std::uint32_t>(to);
  return mix(mix(id, pair), sender ? 2 : 3);
}

}  // namespace

Live::Live(const catalog::Cluster& cluster, const estimate::Estimator& estimator,
           const network::Network& network, Board& board, std::int32_t rank)
    : RecordCompiler(plan_.model),
      estimator_(estimator),
      network_(network),
      board_(board),
      rank_(rank),
      engine_((plan_.model = Model::from(cluster, {}),
               plan_.port_capacity = network.port_capacity(), others_.partners = this, plan_),
              program_, 0, others_, nullptr) {}

void Live::define(const Op& op) {
  program_.times.push_back(work_time(op, plan_.model, estimator_));
  const bool communicates =
      std::holds_alternative<Collective>(op.work) || std::holds_alternative<PointToPoint>(op.work);
  works_.push_back(communicates ? op.work : Work{});
}

void Live::define(const trace::Graph& graph) { add_graph(graphs_kept_.emplace_back(graph)); }

void Live::define(const trace::Communicator& c, const std::vector<int>& present) {
  Slot& slot = slots_.emplace_back();
  slot.id = c.id;
  slot.rank = c.rank;
  slot.placement = c.ranks;
  // If the members are not known, they are assumed to be adjacent ranks.
  if (slot.placement.size() != static_cast<std::size_t>(c.size)) {
    slot.placement.clear();
    for (std::int32_t i = 0; i < c.size; ++i)
      slot.placement.push_back(std::max(0, rank_ - c.rank) + i);
  }
  for (std::int32_t rank : slot.placement) {
    const bool runs =
        present.empty() || std::find(present.begin(), present.end(), rank) != present.end();
    slot.present.push_back(runs);
    if (runs && rank != rank_ &&
        std::find(partners_.begin(), partners_.end(), rank) == partners_.end())
      partners_.push_back(rank);
  }
}

std::uint32_t Live::call(const trace::Record& record, const trace::Record* wide) {
  if (open_calls_ == 0 && program_.instructions.size() > 4096 && engine_.idle()) start_anew();
  if (wide != nullptr) add(0, *wide);
  const std::size_t before = program_.instructions.size();
  add(next_number_++, record);
  if (program_.instructions.size() == before) return none;
  engine_.grow();
  ++open_calls_;
  return static_cast<std::uint32_t>(before);
}

void Live::over(std::uint32_t) { --open_calls_; }

bool Live::queue_full(std::uint32_t call) const {
  const Instruction& in = program_.instructions[call];
  if (in.queue_place == none || in.queue_place < plan_.model.queue_depth) return false;
  const std::uint32_t lane = in.lane_list ? program_.lane_lists[in.lane + 1] : in.lane;
  return engine_.closed(lane) + plan_.model.queue_depth <= in.queue_place;
}

std::int64_t Live::wait_over(std::uint32_t call) const {
  const Instruction& in = program_.instructions[call];
  std::int64_t time = 0;
  for (std::uint32_t i = in.waits_begin; i < in.waits_end; ++i) {
    const std::int64_t done = engine_.done(program_.waits[i]);
    if (done < 0) return -1;
    time = std::max(time, done);
  }
  return time;
}

// Arrivals of other processes must not be missed: while communication waits for partners, the
// device does not advance beyond the clocks of these partners.
Live::Progress Live::step(bool patient) {
  std::int64_t next = engine_.next_time();
  if (engine_.waits_for_partners()) {
    if (partners_came()) return Progress::made;
    if (next == never || (patient && next > horizon_ && !comes_first(next))) {
      publish();
      post_waiting(next);
      return Progress::behind_partners;
    }
  }
  post_waiting(-2);
  if (next == never) return Progress::nothing_to_do;
  engine_.step();
  publish();
  return Progress::made;
}

bool Live::partners_came() {
  missing_.clear();
  horizon_ = never;
  looked_at_ = board_.arrivals();
  if (!engine_.await_partners()) return false;
  post_waiting(-2);
  return true;
}

void Live::advance(std::int64_t time, bool patient) {
  for (;;) {
    if (engine_.next_time() <= time) {
      if (step(patient) != Progress::made) break;
    } else if (!engine_.waits_for_partners() || !partners_came()) {
      break;
    }
  }
  post_waiting(-2);  // the host continues and may issue work before the device's next event
  if (!engine_.waits_for_partners() && time > published_)
    board_.post(clock_key(rank_), 0, published_ = time);
}

// The posted time is valid only for the arrivals seen so far. After another arrival it has to be
// posted again.
void Live::post_waiting(std::int64_t next) {
  if (next == posted_waiting_ && (next == -2 || posted_at_ == looked_at_)) return;
  if (posted_waiting_ != -2) board_.post(waits_key(rank_), posted_at_, -2);
  posted_waiting_ = next, posted_at_ = looked_at_;
  if (next != -2) board_.post(waits_key(rank_), posted_at_, next);
}

// Whether this process may advance first: all missing partners wait too, and no waiting process has
// an earlier event.
bool Live::comes_first(std::int64_t next) const {
  auto later = [&](std::int32_t rank) {
    const std::int64_t theirs = board_.read(waits_key(rank), looked_at_);
    return theirs > next || (theirs == next && rank > rank_);
  };
  auto waits = [&](std::int32_t rank) { return board_.read(waits_key(rank), looked_at_) >= 0; };
  return std::all_of(missing_.begin(), missing_.end(), later) &&
         std::all_of(partners_.begin(), partners_.end(),
                     [&](std::int32_t rank) { return !waits(rank) || later(rank); });
}

void Live::publish() {
  const std::int64_t now = engine_.now();
  if (now <= published_) return;
  published_ = now;
  board_.post(clock_key(rank_), 0, now);
}

std::vector<std::int32_t> Live::missing_ranks() const { return missing_; }

std::int64_t Live::event_time(std::uint32_t event) const {
  if (auto it = events_.find(event); it != events_.end()) return engine_.done(it->second);
  auto old = event_times_.find(event);
  return old == event_times_.end() ? -2 : old->second;
}

bool Live::stream_done(std::uint16_t stream, std::int64_t time) {
  const std::uint32_t ticket = lanes_.tail(lanes_.of_stream(stream, 0));
  engine_.grow();
  if (ticket == none) return true;
  const std::int64_t done = engine_.done(ticket);
  return done >= 0 && done <= time;
}

void Live::keep_spans(bool keep) { engine_.keep_spans(keep ? &spans_ : nullptr); }

std::vector<Span> Live::take_spans() {
  std::vector<Span> taken;
  taken.swap(spans_.spans);
  return taken;
}

std::uint32_t Live::time_of(Slot& slot, std::span<const std::uint32_t> ops) {
  std::uint64_t key = ops.size();
  for (std::uint32_t op : ops) key = mix(key, op);
  auto [it, fresh] = slot.times.try_emplace(key, 0);
  if (!fresh) return it->second;
  std::vector<const Work*> works;
  for (std::uint32_t op : ops) works.push_back(&works_[op]);
  const std::span<const std::int32_t> placement(slot.placement);
  const auto place = static_cast<std::size_t>(slot.rank);
  const int per_node = plan_.model.gpus_per_node;
  const bool between = std::any_of(placement.begin(), placement.end(), [&](std::int32_t rank) {
    return rank / per_node != placement[0] / per_node;
  });
  program_.communication_times.push_back(communication_time(
      works,
      {placement, place < placement.size() ? placement[place] : rank_, {&placement, 1}, between},
      network_, plan_.model));
  return it->second = static_cast<std::uint32_t>(program_.communication_times.size() - 1);
}

std::uint32_t Live::communication(std::uint32_t record, std::uint16_t number,
                                  std::span<const std::uint32_t> ops) {
  Slot& slot = slots_[number];
  Communication c;
  c.time = time_of(slot, ops);
  c.record = record, c.op = ops[0], c.slot = number;
  c.first = static_cast<std::uint32_t>(meetings_.size());
  const std::uint32_t first_call = slot.calls;
  for (std::uint32_t op : ops) {
    if (const auto* message = std::get_if<PointToPoint>(&works_[op])) {
      auto& count = message->send ? slot.sends : slot.receives;
      meetings_.push_back({number, static_cast<std::uint8_t>(message->send ? 2 : 3), message->peer,
                           count[message->peer]++});
    } else {
      if (c.number < 0) c.number = slot.calls;
      meetings_.push_back({number, 0, 0, slot.calls++});
    }
  }
  c.last = c.finish_first = static_cast<std::uint32_t>(meetings_.size());
  for (std::uint32_t n = first_call; n < slot.calls; ++n) meetings_.push_back({number, 1, 0, n});
  c.finish_last = static_cast<std::uint32_t>(meetings_.size());
  program_.communications.push_back(c);
  return static_cast<std::uint32_t>(program_.communications.size() - 1);
}

void Live::arrive(std::uint32_t first, std::uint32_t last, std::int64_t now) {
  for (std::uint32_t i = first; i < last; ++i) {
    const Meeting& meeting = meetings_[i];
    const Slot& slot = slots_[meeting.slot];
    const bool sender = meeting.phase == 2;
    board_.post(meeting.phase < 2 ? member_key(slot.id, slot.rank, meeting.phase)
                                  : message_key(slot.id, sender ? slot.rank : meeting.peer,
                                                sender ? meeting.peer : slot.rank, sender),
                meeting.number, now);
  }
  board_.count_arrival();
}

// The keys of the other parties, with their ranks in the job.
template <class Visit>
void Live::each_party(const Meeting& meeting, Visit&& visit) const {
  const Slot& slot = slots_[meeting.slot];
  const auto size = static_cast<std::int32_t>(slot.placement.size());
  if (meeting.phase >= 2) {
    const bool sender = meeting.phase == 2;
    if (meeting.peer < 0 || meeting.peer >= size ||
        slot.present[static_cast<std::size_t>(meeting.peer)] == 0)
      return;
    visit(message_key(slot.id, sender ? slot.rank : meeting.peer, sender ? meeting.peer : slot.rank,
                      !sender),
          slot.placement[static_cast<std::size_t>(meeting.peer)]);
    return;
  }
  for (std::int32_t member = 0; member < size; ++member)
    if (member != slot.rank && slot.present[static_cast<std::size_t>(member)] != 0)
      visit(member_key(slot.id, member, meeting.phase),
            slot.placement[static_cast<std::size_t>(member)]);
}

std::int64_t Live::met(std::uint32_t first, std::uint32_t last) {
  std::int64_t time = 0;
  bool complete = true;
  for (std::uint32_t i = first; i < last; ++i)
    each_party(meetings_[i], [&](std::uint64_t key, std::int32_t rank) {
      // Read the clock first: an arrival that is not there afterwards is later than that clock.
      const std::int64_t clock = board_.read(clock_key(rank), 0);
      const std::int64_t came = board_.read(key, meetings_[i].number);
      time = std::max(time, came);
      if (came >= 0) return;
      complete = false;
      horizon_ = std::min(horizon_, std::max<std::int64_t>(clock, 0));
      missing_.push_back(rank);
    });
  return complete ? time : -1;
}

// Discards all calls so far. Only the times of events are still needed.
void Live::start_anew() {
  for (const auto& [event, ticket] : events_) event_times_[event] = engine_.done(ticket);
  forget();
  meetings_.clear();
  engine_.forget();
}

}  // namespace maya::simulate
