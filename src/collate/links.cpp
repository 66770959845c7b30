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
std::uint64_t address(const Record& r, std::uint64_t upper) { return upper << 32 | r.value; }

// An event is identified by the last work of its stream before it: the messages of a group, or a
// kernel.
class LastWork {
 public:
  explicit LastWork(const trace::Recording& recording) : recording_(recording) {}

  void see(const Record& r) {
    if (r.kind == Kind::group_begin) ++depth_, fresh_ = true;
    if (r.kind == Kind::group_end) --depth_;
    if (r.kind < Kind::launch || r.kind > Kind::point_to_point) return;
    std::uint64_t hash = mix(hash_op(recording_.ops[r.value]), r.aux);
    if (const auto* message = std::get_if<PointToPoint>(&recording_.ops[r.value].work))
      hash = mix(hash,
                 static_cast<std::uint32_t>(message->peer - recording_.communicators[r.aux].rank));
    Work& work = of_stream_[r.stream];
    work.hash = depth_ > 0 && !fresh_ ? mix(work.hash, hash) : hash;
    work.events = 0;
    fresh_ = false;
  }
  // A hash for an event that is recorded now: the last work, and the number of events recorded
  // since.
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

// Whether each block has work of its own, and not only what is done between messages.
std::vector<bool> working(const trace::Recording& recording, const Blocks& blocks) {
  std::vector<bool> result(blocks.letters.size());
  for (std::size_t b = 0; b < result.size(); ++b)
    for (std::uint32_t i = blocks.begin[b]; i < blocks.begin[b + 1]; ++i) {
      const Kind kind = recording.records[i].kind;
      if (kind == Kind::launch || kind == Kind::graph_launch) result[b] = true;
    }
  return result;
}

std::vector<std::uint32_t> links_of(const trace::Recording& recording) {
  const auto& records = recording.records;
  std::vector<std::uint32_t> result(records.size(), no_link);
  std::unordered_map<std::uint32_t, std::uint32_t> event_at;   // event → record
  std::unordered_map<std::uint64_t, std::uint32_t> tensor_at;  // address → record
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    if (r.kind == Kind::event_record) {
      event_at[r.value] = i;
    } else if (r.kind == Kind::tensor_allocate) {
      tensor_at[address(r, std::bit_cast<trace::Wide>(records[i - 1]).x)] = i;
    } else if (r.kind == Kind::tensor_release) {
      const auto found = tensor_at.find(address(r, r.aux));
      if (found == tensor_at.end()) continue;
      result[i] = found->second;
      tensor_at.erase(found);
    } else if (refers(r.kind)) {
      const auto found = event_at.find(r.value);
      if (found != event_at.end()) result[i] = found->second;
    }
  }
  return result;
}

// Per event: the block with work that waits for it first, or no_link.
std::vector<std::uint32_t> waiting_blocks(const trace::Recording& recording, const Blocks& blocks,
                                          const std::vector<std::uint32_t>& links,
                                          const std::vector<bool>& works) {
  std::vector<std::uint32_t> result(recording.records.size(), no_link);
  std::vector<std::uint32_t> next(works.size());  // per block: the next with work, this included
  std::uint32_t after = no_link;
  for (std::size_t b = works.size(); b-- > 0; next[b] = after)
    if (works[b]) after = static_cast<std::uint32_t>(b);
  for (std::size_t b = 0; b < works.size(); ++b)
    for (std::uint32_t i = blocks.begin[b]; i < blocks.begin[b + 1]; ++i)
      if (recording.records[i].kind != Kind::tensor_release && links[i] != no_link &&
          result[links[i]] == no_link)
        result[links[i]] = next[b];
  return result;
}

// Per block: the distances of the peers that the next messages after it are sent to. If a rank
// holds two parts of a model, one may send its results to the next stage and the other to the
// previous.
std::vector<std::uint64_t> directions(const trace::Recording& recording, const Blocks& blocks) {
  std::vector<std::uint64_t> result(blocks.letters.size());
  std::uint64_t next = 0;
  for (std::size_t b = result.size(); b-- > 0;) {
    result[b] = next;
    std::uint64_t own = 0;
    for (std::uint32_t i = blocks.begin[b]; i < blocks.begin[b + 1]; ++i) {
      const Record& r = recording.records[i];
      if (r.kind != Kind::point_to_point) continue;
      const auto& message = std::get<PointToPoint>(recording.ops[r.value].work);
      const std::int32_t distance = message.peer - recording.communicators[r.aux].rank;
      if (message.send) own += mix(3, static_cast<std::uint32_t>(distance));
    }
    if (own != 0) next = own;
  }
  return result;
}

}  // namespace

Links::Links(std::span<const trace::Recording* const> recordings,
             std::span<const Blocks* const> blocks) {
  std::unordered_map<std::uint64_t, std::uint32_t> number_of;
  auto number = [&](std::uint64_t key) {
    const auto [at, fresh] =
        number_of.try_emplace(key, static_cast<std::uint32_t>(families_.size()));
    if (fresh) families_.emplace_back();
    return at->second;
  };
  std::vector<std::vector<std::uint64_t>> use_of(recordings.size());  // by record
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    const auto& records = recordings[k]->records;
    const auto& letters = blocks[k]->letters;
    link_of_.push_back(links_of(*recordings[k]));
    family_of_.emplace_back(records.size(), no_link);
    use_of[k].resize(records.size());
    const std::vector<bool> works = working(*recordings[k], *blocks[k]);
    const auto waiting = waiting_blocks(*recordings[k], *blocks[k], link_of_[k], works);
    const auto direction = directions(*recordings[k], *blocks[k]);
    LastWork last_work(*recordings[k]);
    for (std::size_t b = 0; b < letters.size(); ++b) {
      std::unordered_map<std::uint64_t, std::uint64_t> behind;  // tensors behind the same record
      for (std::uint32_t i = blocks[k]->begin[b]; i < blocks[k]->begin[b + 1]; ++i) {
        const Record& r = records[i];
        last_work.see(r);
        if (r.kind == Kind::event_record) {
          const std::uint32_t by = waiting[i];
          family_of_[k][i] = number(last_work.event(r));
          if (by != no_link) use_of[k][i] = mix(direction[by], letters[by] + 1);
        } else if (r.kind == Kind::tensor_allocate) {
          // Blocks between messages look alike, so the next block is included.
          const std::uint64_t next = works[b] || b + 1 == letters.size() ? 0 : letters[b + 1] + 1;
          const std::uint64_t place = blocks[k]->place[i];
          family_of_[k][i] = number(mix(mix(letters[b], next), mix(place, ++behind[place])));
          use_of[k][i] = direction[b];
          std::uint64_t& bytes = families_[family_of_[k][i]].bytes;
          bytes = std::min(bytes, std::bit_cast<trace::Wide>(records[i - 1]).y);
        }
      }
    }
  }
  count_references(recordings.size());
  // Families on which the stages do not agree are split further: by the work that waits, and by
  // where it sends its results.
  std::vector<bool> agreed;
  for (const Family& family : families_) agreed.push_back(family.agreed);
  for (std::size_t k = 0; k < recordings.size(); ++k)
    for (std::size_t i = 0; i < family_of_[k].size(); ++i) {
      const std::uint32_t whole = family_of_[k][i];
      if (whole == no_link || agreed[whole]) continue;
      family_of_[k][i] = number(mix(mix(17, whole), use_of[k][i]));
      families_[family_of_[k][i]].bytes = families_[whole].bytes;
    }
  count_references(recordings.size());
}

void Links::count_references(std::size_t recordings) {
  for (Family& family : families_) family.numbers.clear(), family.agreed = true;
  for (std::size_t k = 0; k < recordings; ++k) {
    std::vector<std::vector<std::uint32_t>> numbers(families_.size());
    std::vector<std::uint32_t> made(families_.size()), number(family_of_[k].size());
    for (std::uint32_t i = 0; i < number.size(); ++i) {
      if (family_of_[k][i] != no_link) number[i] = made[family_of_[k][i]]++;
      if (const std::uint32_t link = link_of_[k][i]; link != no_link)
        numbers[family_of_[k][link]].push_back(number[link]);
    }
    for (std::size_t f = 0; f < families_.size(); ++f) {
      Family& family = families_[f];
      const std::size_t common = std::min(numbers[f].size(), family.numbers.size());
      family.agreed &=
          std::equal(numbers[f].begin(), numbers[f].begin() + static_cast<std::ptrdiff_t>(common),
                     family.numbers.begin());
      if (numbers[f].size() > family.numbers.size()) family.numbers = std::move(numbers[f]);
    }
  }
}

std::uint32_t Links::target(std::uint32_t family, std::uint32_t n) const {
  const Family& f = families_[family];
  if (!f.agreed || f.numbers.empty()) return no_link;
  if (n < f.numbers.size()) return f.numbers[n];
  // There are more references than in any recording: continue with the same distance as the last.
  return f.numbers.back() + (n - static_cast<std::uint32_t>(f.numbers.size()) + 1);
}

std::vector<std::pair<std::uint32_t, std::int64_t>> waits_of(const trace::Recording& recording) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> result;
  std::unordered_map<std::uint32_t, std::int64_t> event_at;
  std::int64_t events = 0;
  std::uint32_t messages = 0;
  for (const Record& r : recording.records) {
    if (r.kind == Kind::point_to_point) ++messages;
    if (r.kind == Kind::event_record) event_at[r.value] = ++events;
    if (r.kind != Kind::stream_wait_event && r.kind != Kind::event_synchronize) continue;
    const auto found = event_at.find(r.value);
    result.emplace_back(messages, found == event_at.end() ? 0 : found->second);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace maya::collate
