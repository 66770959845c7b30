#include "collate/links.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

bool refers(Kind kind) {
  return kind == Kind::stream_wait_event || kind == Kind::event_synchronize ||
         kind == Kind::event_query || kind == Kind::tensor_release;
}
bool makes(Kind kind) { return kind == Kind::event_record || kind == Kind::tensor_allocate; }

class Union {
 public:
  std::uint32_t add() {
    parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
    return parent_.back();
  }
  std::uint32_t find(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

std::uint64_t address(const Record& r, std::uint64_t upper) { return upper << 32 | r.value; }

// An event stands for the work that its stream was given last: the messages of a group, a kernel.
class LastWork {
 public:
  explicit LastWork(const trace::Recording& recording) : recording_(recording) {}

  void see(const Record& r) {
    if (r.kind == Kind::group_begin) ++depth_, fresh_ = true;
    if (r.kind == Kind::group_end) --depth_;
    if (r.kind < Kind::launch || r.kind > Kind::point_to_point) return;
    std::uint64_t hash = mix(hash_op(recording_.ops[r.value]), r.aux);
    if (const auto* message = std::get_if<PointToPoint>(&recording_.ops[r.value].work))
      hash = mix(hash, static_cast<std::uint32_t>(message->peer -
                                                  recording_.communicators[r.aux].rank));
    Work& work = of_stream_[r.stream];
    work.hash = depth_ > 0 && !fresh_ ? mix(work.hash, hash) : hash;
    work.events = 0;
    fresh_ = false;
  }
  // Of an event that is recorded now; the first behind the work, the second …
  std::uint64_t event(const Record& r) {
    Work& work = of_stream_[r.stream];
    return mix(work.hash, ++work.events);
  }

 private:
  struct Work {
    std::uint64_t hash{}, events{};
  };
  const trace::Recording& recording_;
  std::unordered_map<std::uint16_t, Work> of_stream_;
  int depth_{};
  bool fresh_{};
};

}  // namespace

Links::Links(std::span<const trace::Recording* const> recordings,
             std::span<const Blocks* const> blocks) {
  struct Reference {
    std::uint32_t record, target;  // target: record, or no_link
  };
  std::vector<std::vector<Reference>> references(recordings.size());
  std::unordered_map<std::uint64_t, std::uint32_t> site_number;
  Union sites;
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    const auto& records = recordings[k]->records;
    site_of_.emplace_back(records.size(), no_link);
    link_of_.emplace_back(records.size(), no_link);
    std::unordered_map<std::uint32_t, std::uint32_t> event_at;   // event → record
    std::unordered_map<std::uint64_t, std::uint32_t> tensor_at;  // address → record
    LastWork last_work(*recordings[k]);
    const auto& letters = blocks[k]->letters;
    std::size_t block = 0;
    std::map<std::uint64_t, std::uint64_t> behind;  // records of the block behind the same one
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (block + 1 < blocks[k]->begin.size() && i >= blocks[k]->begin[block + 1])
        ++block, behind.clear();
      const Record& r = records[i];
      last_work.see(r);
      if (!refers(r.kind) && !makes(r.kind)) continue;
      std::uint64_t key = 0;
      if (r.kind == Kind::event_record) {
        key = last_work.event(r);
      } else {
        // The block, and those around it: what stands between two messages is alike for many.
        const std::uint64_t before = block > 0 ? letters[block - 1] + 1 : 0,
                            after = block + 1 < letters.size() ? letters[block + 1] + 1 : 0;
        const std::uint64_t place = blocks[k]->place[i];
        key = mix(mix(mix(before, letters[block]), after), mix(place, ++behind[place]));
      }
      const auto [at, fresh] =
          site_number.try_emplace(key, static_cast<std::uint32_t>(site_number.size()));
      if (fresh) sites.add(), bytes_of_site_.push_back(UINT64_MAX);
      const std::uint32_t site = site_of_[k][i] = at->second;
      switch (r.kind) {
        case Kind::event_record:
          event_at[r.value] = i;
          break;
        case Kind::tensor_allocate: {
          const auto wide = std::bit_cast<trace::Wide>(records[i - 1]);
          tensor_at[address(r, wide.x)] = i;
          bytes_of_site_[site] = std::min(bytes_of_site_[site], wide.y);
          break;
        }
        case Kind::tensor_release: {
          const auto found = tensor_at.find(address(r, r.aux));
          references[k].push_back({i, found == tensor_at.end() ? no_link : found->second});
          if (found != tensor_at.end()) tensor_at.erase(found);
          break;
        }
        default: {
          const auto found = event_at.find(r.value);
          references[k].push_back({i, found == event_at.end() ? no_link : found->second});
        }
      }
      if (!refers(r.kind)) continue;
      const std::uint32_t target = link_of_[k][i] = references[k].back().target;
      if (target != no_link) sites.join(site, site_of_[k][target]);
    }
  }
  std::unordered_map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t s = 0; s < site_number.size(); ++s)
    family_of_site_.push_back(
        number.try_emplace(sites.find(s), static_cast<std::uint32_t>(number.size())).first->second);
  families_.resize(number.size());

  // Per recording and family: numbers of the targets, and how far back they were.
  struct Use {
    std::vector<std::uint32_t> numbers, distances;
  };
  std::vector<std::vector<Use>> uses(recordings.size(), std::vector<Use>(families_.size()));
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    std::vector<std::uint32_t> made(families_.size());
    std::unordered_map<std::uint32_t, std::uint32_t> number_of;  // record → within its family
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < recordings[k]->records.size(); ++i) {
      const Record& r = recordings[k]->records[i];
      if (!refers(r.kind) && !makes(r.kind)) continue;
      const std::uint32_t f = family_of_site_[site_of_[k][i]];
      families_[f].tensors |= r.kind == Kind::tensor_allocate || r.kind == Kind::tensor_release;
      if (makes(r.kind)) {
        number_of[i] = made[f]++;
        continue;
      }
      const Reference& reference = references[k][next++];
      Use& use = uses[k][f];
      const std::uint32_t target =
          reference.target == no_link ? no_link : number_of[reference.target];
      use.numbers.push_back(target);
      use.distances.push_back(target == no_link ? no_link : made[f] - target);
    }
  }
  for (std::size_t f = 0; f < families_.size(); ++f) {
    Family& family = families_[f];
    for (std::size_t k = 0; k < recordings.size(); ++k) {
      const auto& numbers = uses[k][f].numbers;
      const std::size_t common = std::min(numbers.size(), family.numbers.size());
      if (!std::equal(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(common),
                      family.numbers.begin()))
        family.rule = Rule::distance;
      if (numbers.size() > family.numbers.size()) family.numbers = numbers;
    }
    if (family.rule == Rule::number) continue;
    bool first = true;
    for (std::size_t k = 0; k < recordings.size(); ++k)
      for (std::uint32_t distance : uses[k][f].distances) {
        if (first) family.distance = distance, first = false;
        if (distance != family.distance) family.rule = Rule::none;
      }
  }
}

std::uint32_t Links::family(std::size_t recording, std::uint32_t record) const {
  const std::uint32_t site = site_of_[recording][record];
  return site == no_link ? no_link : family_of_site_[site];
}

std::uint32_t Links::target(std::uint32_t family, std::uint32_t n, std::uint32_t made) const {
  const Family& f = families_[family];
  if (f.rule == Rule::distance)
    return f.distance == no_link || f.distance > made ? no_link : made - f.distance;
  if (n < f.numbers.size()) return f.numbers[n];
  // More of them than in any recording: as far ahead or behind as the last ones were.
  if (f.numbers.empty() || f.numbers.back() == no_link) return no_link;
  return f.numbers.back() + (n - static_cast<std::uint32_t>(f.numbers.size()) + 1);
}

std::uint64_t Links::bytes(std::size_t recording, std::uint32_t record) const {
  return bytes_of_site_[site_of_[recording][record]];
}

}  // namespace maya::collate
