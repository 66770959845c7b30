#include "collate/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace maya::collate {
namespace {

// A candidate for an axis: the communicators of one size. A rank may have several of the same size
// (eight tensor-parallel and eight data-parallel ranks). They are distinguished by whether they
// carry messages, then by the number of calls.
struct Kind {
  std::int32_t size{};
  bool messages{};
  std::uint32_t calls{};  // of collectives
};

constexpr std::size_t most_kinds = 8, most_axes = 5, most_checked = 64;

// A pipeline may send its messages over the communicator of all ranks. The distance to the nearest
// peer is then the distance between stages.
std::int32_t stage_distance(const Member& member, std::span<const job::Communicator> communicators,
                            std::int32_t world_size) {
  std::int32_t distance = 0;
  for (const ChannelUse& channel : member.print.channels) {
    if (std::ssize(communicators[member.communicator[channel.slot]].ranks) != world_size) continue;
    const std::int32_t d = std::abs(channel.peer - member.recording->identity.rank);
    if (d > 0 && (distance == 0 || d < distance)) distance = d;
  }
  return distance;
}

struct Kinds {
  std::vector<Kind> all;             // innermost first
  std::vector<int> of_communicator;  // or -1
};

Kinds find_kinds(std::span<const Member> members, std::span<const job::Communicator> communicators,
                 std::int32_t world_size) {
  using Key = std::tuple<std::int32_t, bool, int>;  // size, messages, number by calls
  std::map<Key, Kind> found;
  std::vector<std::optional<Key>> key_of(communicators.size());
  for (const Member& member : members) {
    const auto& uses = member.print.collectives;
    std::vector<bool> messages(uses.size());
    for (const ChannelUse& channel : member.print.channels) messages[channel.slot] = true;
    std::vector<std::size_t> slots;
    for (std::size_t slot = 0; slot < uses.size(); ++slot) {
      const auto size = std::ssize(communicators[member.communicator[slot]].ranks);
      if (size > 1 && size < world_size && world_size % size == 0) slots.push_back(slot);
    }
    std::stable_sort(slots.begin(), slots.end(),
                     [&](std::size_t a, std::size_t b) { return uses[a].count > uses[b].count; });
    std::map<std::pair<std::int32_t, bool>, int> numbers;
    for (std::size_t slot : slots) {
      const std::uint32_t index = member.communicator[slot];
      const auto size = static_cast<std::int32_t>(communicators[index].ranks.size());
      const Key key{size, messages[slot], numbers[{size, messages[slot]}]++};
      Kind& kind = found.try_emplace(key, Kind{size, messages[slot], 0}).first->second;
      kind.calls = std::max(kind.calls, uses[slot].count);
      if (!key_of[index]) key_of[index] = key;
    }
  }
  if (const std::int32_t d = stage_distance(members[0], communicators, world_size);
      d > 1 && world_size % d == 0)
    found.try_emplace(Key{world_size / d, true, -1}, Kind{world_size / d, true, 0});

  std::vector<std::pair<Key, Kind>> order(found.begin(), found.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.second.messages, b.second.calls, a.second.size) <
           std::tuple(b.second.messages, a.second.calls, b.second.size);
  });
  Kinds kinds;
  std::map<Key, int> number;
  for (const auto& [key, kind] : order) {
    if (kinds.all.size() == most_kinds) break;
    number[key] = static_cast<int>(kinds.all.size());
    kinds.all.push_back(kind);
  }
  for (const auto& key : key_of)
    kinds.of_communicator.push_back(key && number.contains(*key) ? number[*key] : -1);
  return kinds;
}

// The members of a communicator over these axes (a bit mask), if the known members are at their
// positions; else empty.
std::vector<std::int32_t> over(const std::vector<Axis>& axes, std::uint32_t mask,
                               const std::vector<std::int32_t>& known) {
  const auto first = std::find_if(known.begin(), known.end(), [](auto rank) { return rank >= 0; });
  if (first == known.end()) return {};
  std::int32_t base = *first;
  std::size_t size = 1;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (mask >> a & 1u) {
      base -= *first / axes[a].stride % axes[a].size * axes[a].stride;
      size *= static_cast<std::size_t>(axes[a].size);
    }
  if (size != known.size()) return {};
  std::vector<std::int32_t> ranks(known.size());
  for (std::size_t place = 0; place < known.size(); ++place) {
    std::int32_t rank = base;
    auto left = static_cast<std::int32_t>(place);
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (mask >> a & 1u) {
        rank += left % axes[a].size * axes[a].stride;
        left /= axes[a].size;
      }
    if (known[place] >= 0 && known[place] != rank) return {};
    ranks[place] = rank;
  }
  return ranks;
}

// A communicator that is an axis has the members of that axis. Any other has the members of the
// smallest number of axes that fit.
std::vector<std::int32_t> members_over(const std::vector<Axis>& axes, int own_axis,
                                       const std::vector<std::int32_t>& known) {
  if (own_axis >= 0) return over(axes, 1u << own_axis, known);
  std::vector<std::int32_t> best;
  int fewest = 99;
  for (std::uint32_t mask = 1; mask < 1u << axes.size(); ++mask) {
    if (std::popcount(mask) >= fewest) continue;
    auto ranks = over(axes, mask, known);
    if (!ranks.empty()) best = std::move(ranks), fewest = std::popcount(mask);
  }
  return best;
}

}  // namespace

std::optional<Grid> Grid::find(std::span<const Member> members,
                               std::span<const job::Communicator> communicators,
                               std::int32_t world_size) {
  std::vector<std::size_t> incomplete;
  for (std::size_t c = 0; c < communicators.size() && incomplete.size() < most_checked; ++c) {
    const auto& slots = communicators[c].slots;
    if (std::count(slots.begin(), slots.end(), job::none) > 0) incomplete.push_back(c);
  }
  if (incomplete.empty()) return std::nullopt;
  const Kinds kinds = find_kinds(members, communicators, world_size);
  const auto rest = kinds.all.size();  // an axis without a communicator

  // Tries every choice of kinds as axes, in every order. The best one explains most communicators,
  // then has no axis without a communicator, then has most axes. The usual order is tried first.
  std::tuple<std::size_t, bool, std::size_t> best{};
  Grid grid;
  for (std::uint32_t mask = 0; mask < 1u << kinds.all.size(); ++mask) {
    std::vector<std::size_t> order;
    std::int64_t product = 1;
    for (std::size_t k = 0; k < kinds.all.size(); ++k)
      if (mask >> k & 1u) {
        order.push_back(k);
        product *= kinds.all[k].size;
      }
    if (order.size() > most_axes || product > world_size || world_size % product != 0) continue;
    const std::size_t named = order.size();
    if (product < world_size) order.push_back(rest);
    do {
      std::vector<Axis> axes;
      std::vector<int> axis_of_kind(rest + 1, -1);
      std::int32_t stride = 1;
      for (std::size_t k : order) {
        const Kind kind =
            k == rest ? Kind{static_cast<std::int32_t>(world_size / product)} : kinds.all[k];
        axis_of_kind[k] = static_cast<int>(axes.size());
        axes.push_back({kind.size, stride, kind.messages});
        stride *= kind.size;
      }
      std::vector<int> own_axis;
      for (int kind : kinds.of_communicator)
        own_axis.push_back(kind < 0 ? -1 : axis_of_kind[static_cast<std::size_t>(kind)]);
      std::size_t explained = 0;
      for (std::size_t c : incomplete)
        explained += !members_over(axes, own_axis[c], communicators[c].ranks).empty();
      if (const std::tuple score{explained, product == world_size, named}; score > best) {
        best = score;
        grid.axes_ = std::move(axes);
        grid.own_axis_ = std::move(own_axis);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  if (std::get<0>(best) == 0) return std::nullopt;
  return grid;
}

std::vector<std::int32_t> Grid::members_of(std::size_t communicator,
                                           const std::vector<std::int32_t>& known) const {
  return members_over(axes_, own_axis_[communicator], known);
}

std::int32_t Grid::stand_in(std::int32_t rank, std::span<const std::int32_t> recorded) const {
  auto likeness = [&](std::int32_t other) {
    int stages = 0, rest = 0;
    for (const Axis& axis : axes_)
      (axis.messages ? stages : rest) += at(axis, rank) == at(axis, other);
    return std::tuple(stages, rest, other <= rank, other <= rank ? other : -other);
  };
  return *std::max_element(recorded.begin(), recorded.end(),
                           [&](auto a, auto b) { return likeness(a) < likeness(b); });
}

std::string Grid::text() const {
  std::string result;
  for (const Axis& axis : axes_)
    result += fmt::format("{}{}", result.empty() ? "" : " × ", axis.size);
  return result;
}

}  // namespace maya::collate
