#include "network/closed_form.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "network/choice.h"

namespace maya::network {
namespace {

bool by_messages(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

bool usual(const Environment& e) {
  const Environment plain = environment_of({});
  return e.algorithm == plain.algorithm && e.protocol == plain.protocol && e.nvls == plain.nvls &&
         e.p2p == plain.p2p && e.least_channels == plain.least_channels &&
         e.most_channels == plain.most_channels && e.ll128_forced == plain.ll128_forced;
}

}  // namespace

ClosedForm::ClosedForm(const catalog::Cluster& cluster, const Parameters& parameters,
                       const Environment& environment, Measured measured)
    : cluster_(cluster),
      parameters_(parameters),
      environment_(environment),
      measured_(std::move(measured)),
      usual_(usual(environment)),
      exchange_(cluster_, parameters_, environment_),
      ports_(cluster_, parameters_.time),
      fitted_(cluster.extra.count("time.fitted") && cluster.extra.at("time.fitted") > 0) {}

Shape ClosedForm::shape(std::span<const std::int32_t> ranks) const {
  int count = static_cast<int>(ranks.size());
  Group group{count ? ranks[0] : 0, count > 1 ? ranks[1] - ranks[0] : 0, count};
  std::int32_t different = 0;
  for (int i = 0; i < count; ++i) different |= ranks[i] ^ (group.first + i * group.stride);
  if (different == 0) {
    {
      std::shared_lock lock(mutex_);
      if (auto at = regular_.find(group); at != regular_.end()) return at->second;
    }
    Shape found = shape_of(cluster_, ranks);
    std::unique_lock lock(mutex_);
    return regular_.emplace(group, found).first->second;
  }
  std::vector<std::int32_t> key(ranks.begin(), ranks.end());
  {
    std::shared_lock lock(mutex_);
    if (auto at = irregular_.find(key); at != irregular_.end()) return at->second;
  }
  Shape found = shape_of(cluster_, ranks);
  std::unique_lock lock(mutex_);
  return irregular_.emplace(std::move(key), found).first->second;
}

const std::vector<Candidate>& ClosedForm::candidates_of(const Shape& shape,
                                                        CollectiveKind kind) const {
  std::pair key{shape, kind};
  {
    std::shared_lock lock(mutex_);
    if (auto at = tables_.find(key); at != tables_.end()) return *at->second;
  }
  auto table = std::make_unique<std::vector<Candidate>>(
      candidates({cluster_, parameters_, environment_, shape, kind}));
  std::unique_lock lock(mutex_);
  return *tables_.emplace(key, std::move(table)).first->second;
}

double ClosedForm::formula_us(const Shape& s, CollectiveKind kind, bool in_switch,
                              double bytes) const {
  if (by_messages(kind)) {
    const ExchangeTime e = kind == CollectiveKind::all_to_all ? exchange_.all_to_all(s, bytes)
                                                              : exchange_.rooted(s, bytes);
    return e.latency_us + e.transfer_us;
  }
  const std::vector<Candidate>& all = candidates_of(s, kind);
  const Choice choice = choose(all, parameters_, s, kind, bytes, in_switch);
  if (!choice.candidate) return 0;
  double best = choice.candidate->time_us(bytes);
  const double chosen = best;
  for (const Candidate& c : all)
    if (in_switch || (c.algorithm != kNvls && c.algorithm != kNvlsTree))
      best = std::min(best, c.time_us(bytes));
  return std::min(chosen, Curve::kSlack * best);
}

double ClosedForm::correction(const Shape& s, CollectiveKind kind, bool in_switch,
                              double bytes) const {
  const auto& measured = measured_.curves(kind, in_switch);
  if (measured.empty() || s.islands != 1 || !usual_) return 1;
  auto ratio = [&](const MeasuredCurve& m) {
    Shape other = s;
    other.ranks = other.most_per_island = m.ranks;
    const double size = m.nearest_measured(bytes);
    const double us = formula_us(other, kind, in_switch, size);
    return us > 0 ? std::log(m.at(size) / us) : 0.0;
  };
  if (s.ranks <= measured.front().ranks) return std::exp(ratio(measured.front()));
  // Far beyond the measurements the formula is used without a correction.
  if (s.ranks >= measured.back().ranks)
    return std::exp(ratio(measured.back()) * measured.back().ranks / s.ranks);
  const auto above = std::find_if(measured.begin(), measured.end(),
                                  [&](const auto& m) { return m.ranks >= s.ranks; });
  const auto below = above - 1;
  const double share =
      std::log(double(s.ranks) / below->ranks) / std::log(double(above->ranks) / below->ranks);
  return std::exp((1 - share) * ratio(*below) + share * ratio(*above));
}

const Curve& ClosedForm::curve(const Shape& s, CollectiveKind kind, bool in_switch) const {
  const std::tuple key{s, kind, in_switch};
  {
    std::shared_lock lock(mutex_);
    if (auto at = curves_.find(key); at != curves_.end()) return *at->second;
  }
  auto made = std::make_unique<Curve>([&](double bytes) {
    return formula_us(s, kind, in_switch, bytes) * correction(s, kind, in_switch, bytes);
  });
  std::unique_lock lock(mutex_);
  return *curves_.emplace(key, std::move(made)).first->second;
}

CollectiveTime ClosedForm::finished(double latency_us, double transfer_us, bool known) const {
  CollectiveTime time;
  time.ns = (latency_us + transfer_us) * 1e3;
  double half = (latency_us * parameters_.time.spread_latency +
                 transfer_us * parameters_.time.spread_bandwidth) *
                1e3;
  time.low_ns = std::max(0.0, time.ns - half), time.high_ns = time.ns + half;
  time.origin = !known    ? estimate::Origin::unknown
                : fitted_ ? estimate::Origin::fitted
                          : estimate::Origin::first_principles;
  return time;
}

CollectiveTime ClosedForm::collective(const Collective& op,
                                      std::span<const std::int32_t> ranks) const {
  // PyTorch's barrier is an all-reduce of one element.
  bool barrier = op.kind == CollectiveKind::barrier;
  CollectiveKind kind = barrier ? CollectiveKind::all_reduce : op.kind;
  double bytes = barrier ? 4 : static_cast<double>(std::max<std::int64_t>(0, op.bytes));
  if (ranks.empty() || bytes == 0) {  // NCCL launches nothing for a count of zero
    CollectiveTime none = finished(0, 0, true);
    none.algorithm = "none";
    return none;
  }
  Shape s = shape(ranks);
  if (s.ranks == 1) {
    // With a single rank it is a copy if input and output differ, else nothing.
    bool copies = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                  kind == CollectiveKind::all_to_all;
    double us = copies ? 2 * bytes / (cluster_.gpu.memory_gbps * 1e3) : 0;
    CollectiveTime alone = finished(copies ? cluster_.gpu.launch_latency_us : 0, us, s.valid);
    alone.algorithm = "copy";
    return alone;
  }
  if (by_messages(kind)) {
    ExchangeTime e = kind == CollectiveKind::all_to_all ? exchange_.all_to_all(s, bytes)
                                                        : exchange_.rooted(s, bytes);
    const double us = curve(s, kind, true)(bytes);
    const double latency = std::min(us, e.latency_us);
    CollectiveTime time = finished(latency, us - latency, s.valid && e.reachable);
    time.algorithm = "p2p", time.protocol = "simple";
    time.channels = std::clamp(2 * e.peers, environment_.least_channels,
                               std::min(32, environment_.most_channels));
    return time;
  }
  bool reachable = s.islands == 1 || (cluster_.nics_per_node > 0 && cluster_.nic.gbps > 0);
  if (!reachable) {
    CollectiveTime none = finished(0, 0, false);
    none.algorithm = "unreachable";
    return none;
  }
  if (op.library != CollectiveLibrary::nccl && kind == CollectiveKind::all_reduce && s.islands == 1)
    if (const double repeated = measured_.engine_us(op.library, s.ranks, bytes); repeated > 0) {
      // Measured in a graph, from one start to the next: the gap between two nodes is no part of
      // it.
      const double gap = std::min(cluster_.host.graph_node_us, 0.5 * repeated);
      const double us = repeated - gap;
      const double latency = std::min(us, measured_.engine_us(op.library, s.ranks, 1) - gap);
      CollectiveTime time = finished(latency, us - latency, s.valid);
      time.algorithm = enum_name(op.library), time.protocol = "own";
      time.channels = environment_.least_channels;
      return time;
    }
  const bool in_switch = reduces_in_switch(op, cluster_.gpu.capability_major);
  Choice choice = choose(candidates_of(s, kind), parameters_, s, kind, bytes, in_switch);
  if (!choice.candidate) return finished(0, 0, false);
  const Candidate& c = *choice.candidate;
  const double us = curve(s, kind, in_switch)(bytes), latency = std::min(us, c.latency_us);
  CollectiveTime time = finished(latency, us - latency, s.valid);
  time.algorithm = kAlgorithmNames[c.algorithm], time.protocol = kProtocolNames[c.protocol];
  time.channels = choice.channels;
  return time;
}

// Messages from all ranks to all ranks take as long as an all-to-all.
double ClosedForm::all_to_all_correction(std::span<const Message> group, double bytes) const {
  std::vector<std::int32_t> ranks;
  for (const Message& m : group) ranks.push_back(m.from);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  const std::size_t n = ranks.size();
  if (n < 3 || group.size() < n * (n - 1)) return 1;
  const double each = bytes / static_cast<double>(group.size()) * static_cast<double>(n);
  return correction(shape(ranks), CollectiveKind::all_to_all, true, each);
}

CollectiveTime ClosedForm::messages(std::span<const Message> group) const {
  bool valid = true;
  double bytes = 0;
  for (const Message& m : group) {
    valid &=
        m.from >= 0 && m.to >= 0 && m.from < cluster_.world_size() && m.to < cluster_.world_size();
    bytes += static_cast<double>(m.bytes);
  }
  if (group.empty() || bytes <= 0) {
    CollectiveTime none = finished(0, 0, true);
    none.algorithm = "none";
    return none;
  }
  ExchangeTime e = exchange_.messages(group);
  const double longer = valid ? all_to_all_correction(group, bytes) : 1;
  CollectiveTime time =
      finished(longer * e.latency_us, longer * e.transfer_us, valid && e.reachable);
  time.algorithm = "p2p", time.protocol = "simple";
  time.channels = std::clamp(2 * e.peers, environment_.least_channels,
                             std::min(32, environment_.most_channels));
  return time;
}

}  // namespace maya::network
