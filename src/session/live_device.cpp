#include "session/live_device.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "clock/system_call.h"
#include "cost/job_estimator.h"
#include "maya/estimate.h"
#include "maya/network.h"
#include "session/absence.h"
#include "session/framework.h"
#include "session/settled_time.h"
#include "session/state.h"
#include "session/timed_wait.h"
#include "session/virtual_time.h"
#include "simulate/live.h"
#include "trace/codec.h"

namespace maya::session {

namespace {

constexpr std::uint64_t wanted_key = 0x77616e746564ULL;

// Over the job's domain; a process without one is alone.
class DomainBoard final : public simulate::Board {
 public:
  void post(std::uint64_t key, std::uint32_t number, std::int64_t time) override {
    if (time_domain != nullptr) time_domain->post(key, number, time);
  }
  std::int64_t read(std::uint64_t key, std::uint32_t number) const override {
    return time_domain != nullptr ? time_domain->read(key, number) : 0;
  }
  void count_arrival() override {
    if (time_domain != nullptr) time_domain->count_arrival();
  }
  std::uint32_t arrivals() const override {
    return time_domain != nullptr ? time_domain->arrivals() : 0;
  }
};

bool has_op(trace::Kind kind) {
  return kind >= trace::Kind::launch && kind <= trace::Kind::point_to_point;
}

struct LiveDevice {
  std::mutex mutex;
  DomainBoard board;
  std::unique_ptr<estimate::Estimator> alone;
  std::unique_ptr<cost::JobEstimator> estimator;
  std::unique_ptr<network::Network> network;
  std::unique_ptr<simulate::Live> model;
  std::uint32_t seen_news{};             // before the board was last looked at
  std::vector<std::uint64_t> op_hashes;  // the same in every process
  struct Draw {
    double memory{}, power{};  // see clock/device_load.h
  };
  std::vector<Draw> draws;   // by op
  std::int64_t accounted{};  // when that was last told to monitors

  // How near an op runs to the memory's bandwidth, and to the rate at which the board draws all it
  // may: the energy of a FLOP within jobs, where the catalogue has it, else the chip's peak.
  Draw draw_of(const Op& op) const {
    if (std::holds_alternative<Collective>(op.work) ||
        std::holds_alternative<PointToPoint>(op.work))
      return {};
    const catalog::Cluster& cluster = state().settings.cluster;
    const double ns = std::max(1.0, (*estimator)(op).ns);
    const auto energy = cluster.extra.find("power.job_pj");
    const auto peak = cluster.gpu.peak_tflops.find(compute_type(op.work));
    const double tflops = flops(op.work) / ns * 1e-3;
    double power = 0;
    if (energy != cluster.extra.end() && energy->second > 0 && cluster.gpu.tdp_watts > 0)
      power = tflops * energy->second / cluster.gpu.tdp_watts;
    else if (peak != cluster.gpu.peak_tflops.end() && peak->second > 0)
      power = tflops / peak->second;
    const double memory = bytes_moved(op.work) / ns / cluster.gpu.memory_gbps;
    return {std::clamp(memory, 0.0, 1.0), std::clamp(std::max(power, memory), 0.0, 1.0)};
  }
  // For monitors: what ran, and how much memory this process holds.
  void account(const std::vector<simulate::Span>& spans) {
    const Settings& settings = state().settings;
    std::unordered_map<std::uint16_t, int> devices;
    state().streams.each([&](Stream& stream) { devices[stream.id] = stream.device; });
    auto in_job = [&](int own) {
      const auto index = static_cast<std::size_t>(std::max(own, 0));
      const int in_node = index < settings.devices.size() ? settings.devices[index] : own;
      return settings.node * settings.cluster.gpus_per_node + in_node;
    };
    for (const simulate::Span& span : spans) {
      const Draw draw = span.op < draws.size() ? draws[span.op] : Draw{};
      time_domain->load(static_cast<std::uint32_t>(in_job(devices[span.stream])))
          .add(span.start_ns, span.end_ns, draw.memory, draw.power);
    }
    clock::Member& member = own_member();
    const int own = spans.empty() ? 0 : devices[spans.back().stream];
    member.device = in_job(own);
    member.used_bytes = state().memory.used(own);
  }

  // What the record refers to, unless the model knows it already.
  void define(const trace::Record& r) {
    Recorder& recorder = state().recorder;
    if (has_op(r.kind))
      while (model->ops() <= r.value) {
        const Op op = recorder.op_of(static_cast<std::uint32_t>(model->ops()));
        model->define(op);
        op_hashes.push_back(trace::hash(op.work, op.name));
        draws.push_back(draw_of(op));
      }
    if (r.kind == trace::Kind::collective || r.kind == trace::Kind::point_to_point)
      while (model->communicators() <= r.aux)
        model->define(recorder.communicator_of(static_cast<std::uint16_t>(model->communicators())),
                      ranks_that_run());
    if (r.kind != trace::Kind::graph_launch) return;
    while (model->graphs() <= r.value) {
      const auto graph = recorder.graph_of(static_cast<std::uint32_t>(model->graphs()));
      for (const trace::GraphNode& node : graph.nodes) define(node.record);
      model->define(graph);
    }
  }
};

std::atomic<LiveDevice*> device{nullptr};  // in use
std::atomic<LiveDevice*> made_device{nullptr};
std::atomic<LiveObserver*> observer{nullptr};

std::map<std::string, std::string> nccl_variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const std::string_view text = *entry; text.substr(0, 5) == "NCCL_")
      if (auto equals = text.find('='); equals != std::string_view::npos)
        found.emplace(text.substr(0, equals), text.substr(equals + 1));
  return found;
}

// Waits for news, or until the job's time has come to `next`: then nobody can do anything before.
bool time_came(std::uint32_t seen, std::int64_t next, std::int64_t real_ns) {
  if (next == simulate::never || own_place() == nullptr) {
    time_domain->await_news(seen, real_ns);
    return false;
  }
  TimedWait wait(next, TimedWait::On::shared_word, &time_domain->header().news);
  if (!wait.over()) time_domain->await_news(seen, real_ns);
  return wait.over();
}

// Their threads may all wait for something else: then their helpers go on for them.
void call_helpers(const std::vector<std::int32_t>& ranks, std::int64_t wanted) {
  for (std::uint32_t i = 0; i < time_domain->members(); ++i) {
    auto& member = time_domain->member(i);
    const std::int32_t rank = member.rank.load();
    if (rank < 0 || std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    time_domain->post(wanted_key + static_cast<std::uint32_t>(rank), 0, wanted);
    member.word.fetch_add(1);
    clock::futex_wake(member.word);
  }
}

// Somebody else has to go on first: the lock is his. True: nobody has anything to do before the
// device's next event.
bool let_partners_work(LiveDevice& d, std::unique_lock<std::mutex>& lock, int& round) {
  const std::vector<std::int32_t> missing = d.model->missing_ranks();
  const std::int64_t next = d.model->next_time();
  const std::uint32_t seen = d.seen_news;
  lock.unlock();
  bool came = false;
  if (time_domain == nullptr) {
    clock::pause_ns(100'000);
  } else {
    if (round % 16 == 0) call_helpers(missing, next == simulate::never ? time_domain->now() : next);
    came = time_came(seen, next, 1'000'000);
  }
  ++round;
  lock.lock();
  return came;
}

// As collate/host_times has it.
bool puts_work(trace::Kind kind) {
  using trace::Kind;
  return has_op(kind) || kind == Kind::host_function || kind == Kind::graph_launch ||
         kind == Kind::stream_synchronize || kind == Kind::device_synchronize;
}

// Goes on with the device until `done()`. Partners that do not come are waited for, as NCCL does.
template <class Done>
void run_until(LiveDevice& d, std::unique_lock<std::mutex>& lock, Done&& done) {
  int round = 0;
  bool patient = true;
  while (!done()) {
    if (time_domain != nullptr) d.seen_news = time_domain->news();
    switch (d.model->step(patient)) {
      case simulate::Live::Progress::made:
        patient = true;
        break;
      case simulate::Live::Progress::nothing_to_do:
        return;
      case simulate::Live::Progress::behind_partners:
        patient = !let_partners_work(d, lock, round);
        break;
    }
  }
}

}  // namespace

bool device_is_live() { return device.load(std::memory_order_relaxed) != nullptr; }

namespace {

void make_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    State& s = state();
    auto d = std::make_unique<LiveDevice>();
    const catalog::Cluster& cluster = s.settings.cluster;
    auto made =
        estimate::make_estimator(cluster.gpu, s.settings.models_directory, "", {torch_version()});
    auto network = network::make_network(cluster, nccl_variables());
    if (!made || network == nullptr) {
      s.recorder.warning("no device time inside the run: " +
                         (made ? std::string("the cluster has no network") : made.error().message));
      return;
    }
    d->alone = std::move(*made);
    d->estimator = std::make_unique<cost::JobEstimator>(*d->alone, cluster);
    d->network = std::move(network);
    d->model = std::make_unique<simulate::Live>(cluster, *d->estimator, *d->network, d->board,
                                                std::max(s.settings.rank, 0));
    if (time_domain != nullptr) {
      d->model->keep_spans(true);
      start_helper();
    }
    made_device = d.release();
  });
}

}  // namespace

void make_device_live() {
  make_device();
  device = made_device.load();
}

namespace {

// Host time that was taken back from a stretch and is still in records before its last one: taken
// from those that follow.
thread_local std::int64_t owed_ns = 0;

void take_from(trace::Record& record, std::int64_t ns) {
  owed_ns += ns;
  const std::int64_t taken = std::min<std::int64_t>(owed_ns, record.host_ns);
  record.host_ns -= static_cast<std::uint32_t>(taken);
  owed_ns -= taken;
}

}  // namespace

std::int64_t live_time_of(trace::Record& record) {
  static thread_local SettledTime settled;
  LiveDevice* d = device;
  const std::int64_t now = thread_now();
  if (d == nullptr || time_domain == nullptr || record.kind >= trace::Kind::tensor_allocate)
    return now;
  const bool sleeps =
      record.kind == trace::Kind::host_gap && (record.flags & trace::Flag::sleeps) != 0;
  if (!puts_work(record.kind) && !sleeps) {
    take_from(record, 0);
    return now;
  }
  const std::int64_t took = thread_worked();
  std::uint64_t what = static_cast<std::uint8_t>(record.kind) + std::uint64_t{1};
  if (has_op(record.kind)) {
    std::lock_guard guard(d->mutex);
    d->define(record);
    what ^= d->op_hashes[record.value];
  }
  clock::HostTimes& times = time_domain->host_times();
  const std::int64_t counts =
      sleeps ? settled.settle_before_sleep(times, took) : settled.settle(times, what, took);
  const std::int64_t time = thread_gives_back(took - counts);
  take_from(record,
            static_cast<std::int64_t>(static_cast<double>(now - time) / time_domain->scale()));
  return time;
}

void live_call(const trace::Record& record, const trace::Record* wide, std::int64_t now) {
  LiveDevice* d = device;
  if (d == nullptr || record.kind >= trace::Kind::tensor_allocate) return;
  std::int64_t over = 0, cost = 0;
  {
    std::unique_lock lock(d->mutex);
    d->define(record);
    const std::int64_t begun = now;
    d->model->advance(now - 1);  // what happens in this very nanosecond may still be joined
    const std::uint32_t call = d->model->call(record, wide);
    if (call == simulate::none) return;
    if (d->model->queue_full(call)) {
      run_until(*d, lock, [&] { return !d->model->queue_full(call); });
      now = std::max(now, d->model->now());
    }
    cost = d->model->cost(call);
    d->model->issue(call, now + cost);
    over = now + cost;
    run_until(*d, lock, [&] {
      const std::int64_t time = d->model->wait_over(call);
      over = std::max(over, time);
      return time >= 0;
    });
    d->model->over(call);
    LiveObserver* watches = observer;
    if (watches != nullptr) watches(record, d->model->number(call), begun, over);
    constexpr std::int64_t now_and_then = 10'000'000;
    if (time_domain != nullptr && watches == nullptr && over - d->accounted > now_and_then) {
      d->accounted = over;
      d->account(d->model->take_spans());
    }
  }
  thread_spends(cost);
  if (time_domain != nullptr) thread_did_work();
  if (over > now + cost || now > thread_now()) thread_sleeps_until(over, clock::Waits::for_device);
}

std::int64_t live_event_time(std::uint32_t event, bool wait) {
  LiveDevice* d = device;
  std::unique_lock lock(d->mutex);
  if (wait) run_until(*d, lock, [&] { return d->model->event_time(event) != -1; });
  return d->model->event_time(event);
}

bool live_event_done(std::uint32_t event) {
  LiveDevice* d = device;
  const std::int64_t now = thread_now();
  {
    std::lock_guard guard(d->mutex);
    d->model->advance(now);
    const std::int64_t time = d->model->event_time(event);
    if (time == -2 || (time >= 0 && time <= now)) return true;
  }
  thread_spins(false);
  return false;
}

bool live_stream_done(std::uint16_t stream) {
  LiveDevice* d = device;
  const std::int64_t now = thread_now();
  {
    std::lock_guard guard(d->mutex);
    d->model->advance(now);
    if (d->model->stream_done(stream, now)) return true;
  }
  thread_spins(false);
  return false;
}

void observe_live_device(LiveObserver* watches) {
  if (ready() != 0) return;
  make_device();
  LiveDevice* d = made_device;
  if (d == nullptr) return;
  observer = watches;
  {
    std::lock_guard guard(d->mutex);
    if (watches != nullptr) d->model->keep_spans(true);
  }
  if (time_domain != nullptr) return;  // the timeline is there anyway
  if (watches != nullptr) follow_real_time();
  device = watches != nullptr ? d : nullptr;
}

bool device_is_observed() { return observer.load(std::memory_order_relaxed) != nullptr; }

std::int64_t live_now() { return thread_now(); }

std::vector<simulate::Span> live_take_spans(bool finish) {
  LiveDevice* d = made_device;
  if (d == nullptr) return {};
  std::unique_lock lock(d->mutex);
  if (finish) run_until(*d, lock, [] { return false; });
  auto spans = d->model->take_spans();
  if (time_domain != nullptr)
    d->account(spans);
  else if (observer.load() == nullptr)
    d->model->keep_spans(false);
  return spans;
}

void live_await_news(std::uint32_t seen, std::int64_t real_ns) {
  LiveDevice* d = device;
  if (d == nullptr) return time_domain->await_news(seen, real_ns);
  std::int64_t next = simulate::never;
  {
    std::lock_guard guard(d->mutex);
    next = d->model->next_time();
  }
  const bool came = time_came(seen, next, real_ns);
  std::lock_guard guard(d->mutex);
  d->model->advance(came ? next : time_domain->now(), !came);
}

void live_help_partners() {
  LiveDevice* d = device;
  if (d == nullptr || time_domain == nullptr || !d->mutex.try_lock()) return;
  const std::int64_t wanted = time_domain->read(
      wanted_key + static_cast<std::uint32_t>(std::max(state().settings.rank, 0)), 0);
  d->model->advance(std::max(wanted, time_domain->now()));
  d->mutex.unlock();
}

}  // namespace maya::session
