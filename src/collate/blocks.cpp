#include "collate/blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

bool compared(Kind kind) {
  switch (kind) {
    case Kind::none:
    case Kind::host_gap:
    case Kind::wide:
    case Kind::event_query:
    case Kind::allocate:
    case Kind::release:
    case Kind::range_push:
    case Kind::range_pop:
    case Kind::mark:
    case Kind::step_boundary:
    case Kind::out_of_memory:
    case Kind::tensor_allocate:
    case Kind::tensor_release:
      return false;
    default:
      return true;
  }
}

// Describes a record in terms that are the same on ranks of different stages.
class Terms {
 public:
  explicit Terms(const trace::Recording& recording) : recording_(recording) {
    for (const Op& op : recording.ops) op_hash_.push_back(hash_op(op));
  }

  std::uint64_t of(const Record& r) {
    std::uint64_t h = mix(static_cast<std::uint64_t>(r.kind) << 8 | (r.flags & ~trace::resumed),
                          number(threads_, r.thread) << 32 | r.aux);
    switch (r.kind) {
      case Kind::launch:
      case Kind::copy:
      case Kind::fill:
      case Kind::collective:
        return mix(h, op_hash_[r.value] + stream(r));
      case Kind::point_to_point: {
        const auto& message = std::get<PointToPoint>(recording_.ops[r.value].work);
        const std::int32_t distance = message.peer - recording_.communicators[r.aux].rank;
        return mix(mix(h, op_hash_[r.value] + stream(r)), static_cast<std::uint32_t>(distance));
      }
      case Kind::graph_launch:
        return mix(h, r.value + stream(r));
      case Kind::event_synchronize:
      case Kind::group_begin:
      case Kind::group_end:
      case Kind::communicator_create:
      case Kind::communicator_destroy:
        return h;
      case Kind::device_synchronize:
        return mix(h, r.value != 0);
      default:
        return mix(h, stream(r));
    }
  }

  std::uint64_t thread(const Record& r) { return number(threads_, r.thread); }

 private:
  // Ids differ between processes (the id of a default stream is the number of its device), so they
  // are numbered in order of first appearance.
  static std::uint64_t number(std::map<std::uint32_t, std::uint64_t>& numbers, std::uint32_t id) {
    return numbers.try_emplace(id, numbers.size()).first->second;
  }
  std::uint64_t stream(const Record& r) { return number(streams_, r.stream) << 40; }

  const trace::Recording& recording_;
  std::vector<std::uint64_t> op_hash_;
  std::map<std::uint32_t, std::uint64_t> threads_, streams_;
};

// A recording in the form that is compared: one number per relevant record.
struct Tokens {
  std::vector<std::uint64_t> hash;
  std::vector<std::uint32_t> record;
  std::vector<std::uint32_t> cuts;  // first token of each block, then the end of the last block
};

// If a record opens a group that contains messages: the record after the group.
std::optional<std::size_t> end_of_messages(const std::vector<Record>& records, std::size_t i) {
  if (records[i].kind == Kind::point_to_point) return i + 1;
  if (records[i].kind != Kind::group_begin) return std::nullopt;
  int depth = 0;
  bool messages = false;
  for (std::size_t j = i; j < records.size(); ++j) {
    if (records[j].kind == Kind::wide || records[j].thread != records[i].thread) continue;
    messages |= records[j].kind == Kind::point_to_point;
    if (records[j].kind == Kind::group_begin) ++depth;
    if (records[j].kind == Kind::group_end && --depth == 0)
      return messages ? std::optional(j + 1) : std::nullopt;
  }
  return std::nullopt;
}

Tokens tokens_of(const trace::Recording& recording) {
  const std::vector<Record>& records = recording.records;
  Tokens tokens;
  Terms terms(recording);
  std::optional<std::uint64_t> thread;
  std::size_t messages_end = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!compared(records[i].kind)) continue;
    bool cut = tokens.hash.empty();
    if (messages_end != 0 && i >= messages_end) cut = true, messages_end = 0;
    const std::uint64_t now = terms.thread(records[i]);
    cut |= messages_end == 0 && thread != now;
    thread = now;
    if (messages_end == 0)
      if (const auto end = end_of_messages(records, i)) cut = true, messages_end = *end;
    if (cut) tokens.cuts.push_back(static_cast<std::uint32_t>(tokens.hash.size()));
    tokens.hash.push_back(terms.of(records[i]));
    tokens.record.push_back(static_cast<std::uint32_t>(i));
  }
  tokens.cuts.push_back(static_cast<std::uint32_t>(tokens.hash.size()));
  return tokens;
}

// Does not depend on the order: Python may visit the parameters of a layer in a different order
// each time.
std::uint64_t hash_of(std::span<const std::uint64_t> tokens) {
  std::uint64_t h = 0;
  for (std::uint64_t token : tokens) h += mix(token, 1);
  return h;
}

// Splits a block that consists of other blocks. A message may separate two blocks in one place and
// not in another: a forward pass and the following backward pass, or several gradient updates.
class Parts {
 public:
  void add(const Tokens& tokens) {
    for (std::size_t b = 0; b + 1 < tokens.cuts.size(); ++b) {
      const auto block =
          std::span(tokens.hash).subspan(tokens.cuts[b], tokens.cuts[b + 1] - tokens.cuts[b]);
      kinds_.try_emplace(hash_of(block), block);
    }
  }

  // Determines where each kind of block is split. Called after all blocks were added.
  void find() {
    std::vector<std::pair<std::uint64_t, std::span<const std::uint64_t>>> by_length(kinds_.begin(),
                                                                                    kinds_.end());
    std::sort(by_length.begin(), by_length.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.second.size(), a.first) < std::tuple(b.second.size(), b.first);
    });
    for (const auto& [hash, block] : by_length) {
      auto cuts = parts_of(block);
      if (cuts.empty()) {
        whole_.insert(hash);
        longest_ = std::max(longest_, block.size());
      } else {
        cuts_[hash] = std::move(cuts);
      }
    }
  }

  Tokens cut(Tokens tokens) const {
    std::vector<std::uint32_t> cuts;
    for (std::size_t b = 0; b + 1 < tokens.cuts.size(); ++b) {
      const std::uint32_t begin = tokens.cuts[b];
      cuts.push_back(begin);
      const auto found =
          cuts_.find(hash_of(std::span(tokens.hash).subspan(begin, tokens.cuts[b + 1] - begin)));
      if (found == cuts_.end()) continue;
      for (std::uint32_t at : found->second) cuts.push_back(begin + at);
    }
    cuts.push_back(tokens.cuts.back());
    tokens.cuts = std::move(cuts);
    return tokens;
  }

 private:
  // Where to split a block that consists of shorter ones; the longest possible first part is used.
  std::vector<std::uint32_t> parts_of(std::span<const std::uint64_t> block) const {
    constexpr std::uint32_t nowhere = UINT32_MAX;
    std::vector<std::uint32_t> from(block.size() + 1, nowhere);
    from[0] = 0;
    for (std::size_t at = 0; at < block.size(); ++at) {
      if (from[at] == nowhere) continue;
      std::uint64_t h = 0;
      for (std::size_t n = 1; n <= std::min(longest_, block.size() - at); ++n) {
        h += mix(block[at + n - 1], 1);
        if (whole_.contains(h) && from[at + n] == nowhere)
          from[at + n] = static_cast<std::uint32_t>(at);
      }
    }
    std::vector<std::uint32_t> cuts;
    if (from.back() == nowhere) return cuts;
    for (std::uint32_t at = from.back(); at != 0; at = from[at]) cuts.push_back(at);
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  std::unordered_map<std::uint64_t, std::span<const std::uint64_t>> kinds_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> cuts_;
  std::unordered_set<std::uint64_t> whole_;
  std::size_t longest_{};
};

// Assigns the records that are not compared: an allocation belongs to the next compared record, a
// release to the previous one.
Blocks blocks_of(const trace::Recording& recording, const Tokens& tokens) {
  const std::vector<Record>& records = recording.records;
  auto takes_memory = [&](std::size_t i) {
    return records[i].kind == Kind::wide && i + 1 < records.size() &&
           (records[i + 1].kind == Kind::tensor_allocate || records[i + 1].kind == Kind::allocate);
  };
  Blocks blocks;
  blocks.place.resize(records.size());
  for (std::size_t b = 0; b + 1 < tokens.cuts.size(); ++b) {
    const std::uint32_t first = tokens.cuts[b];
    std::uint32_t begin = 0;
    if (first > 0) {
      begin = tokens.record[first - 1] + 1;
      while (begin < tokens.record[first] && !takes_memory(begin)) ++begin;
    }
    blocks.begin.push_back(begin);
  }
  blocks.begin.push_back(static_cast<std::uint32_t>(records.size()));
  for (std::size_t b = 0; b + 1 < tokens.cuts.size(); ++b)
    for (std::uint32_t i = blocks.begin[b], token = tokens.cuts[b]; i < blocks.begin[b + 1]; ++i) {
      blocks.place[i] = token == tokens.cuts[b] ? 0 : tokens.hash[token - 1];
      token += token < tokens.record.size() && tokens.record[token] == i;
    }
  return blocks;
}

}  // namespace

std::vector<Blocks> cut_alike(std::span<const trace::Recording* const> recordings) {
  std::vector<Tokens> tokens;
  Parts parts;
  for (const trace::Recording* recording : recordings) tokens.push_back(tokens_of(*recording));
  for (const Tokens& one : tokens) parts.add(one);
  parts.find();
  std::unordered_map<std::uint64_t, std::uint32_t> letters;
  std::vector<Blocks> result;
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    const Tokens cut = parts.cut(tokens[k]);
    result.push_back(blocks_of(*recordings[k], cut));
    for (std::size_t b = 0; b + 1 < cut.cuts.size(); ++b) {
      const std::uint64_t hash =
          hash_of(std::span(cut.hash).subspan(cut.cuts[b], cut.cuts[b + 1] - cut.cuts[b]));
      result.back().letters.push_back(
          letters.try_emplace(hash, static_cast<std::uint32_t>(letters.size())).first->second);
    }
  }
  return result;
}

}  // namespace maya::collate
