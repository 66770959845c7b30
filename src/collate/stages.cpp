#include "collate/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "collate/blocks.h"
#include "collate/caching_allocator.h"
#include "collate/hash.h"
#include "collate/links.h"
#include "collate/recorded_memory.h"
#include "collate/repetition.h"

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

// How the members of a communicator change from stage to stage.
struct Place {
  bool shared{};  // all stages use the same communicator; else each stage has its own
};

// A recorded stage.
struct Stage {
  const trace::Recording* recording{};
  std::int64_t at{};  // its number in the pipeline
  Blocks blocks{};
};

// Two recorded stages and the missing stages between them.
class StageGap {
 public:
  StageGap(const std::vector<const trace::Recording*>& all, const std::vector<Stage>& stages,
           const Stage& a, const Stage& b)
      : all_(all),
        stages_(stages),
        a_(*a.recording),
        b_(*b.recording),
        at_a_(a.at),
        at_b_(b.at),
        blocks_a_(a.blocks),
        blocks_b_(b.blocks) {
    order_a_ = repetitions_of(blocks_a_.letters);
    while (head_ < order_a_.size() && order_a_[head_].count == 1) ++head_;
    order_a_.erase(order_a_.begin(), order_a_.begin() + static_cast<std::ptrdiff_t>(head_));
    const auto order = same_head(blocks_b_)
                           ? counted(order_a_, std::span(blocks_b_.letters).subspan(head_))
                           : std::nullopt;
    if (!order)
      why_ = "the work between their messages differs, or its order has no regular pattern";
    else if (!place_communicators())
      why_ = "their communicators differ";
    alike_ = why_.empty();
    if (!alike_) return;
    order_b_ = *order;
    const trace::Recording* both[] = {&a_, &b_};
    const Blocks* blocks[] = {&blocks_a_, &blocks_b_};
    links_.emplace(both, blocks);
    try_other();
    why_.clear();
  }

  bool alike() const { return alike_; }
  // Why a stage cannot be derived.
  const std::string& why() const { return why_; }
  double memory_off() const { return memory_off_; }
  bool waits_known() const { return waits_known_; }
  // Whether memory and waits of the derived stages are reliable. If not, the stages should run.
  bool sure() {
    constexpr double little = 0.01;
    if (!alike_) return false;
    if (!waits_known_) why_ = "the events that their streams wait for cannot be derived";
    if (std::abs(memory_off_) > little)
      why_ = fmt::format("their memory cannot be derived from the order of their work ({:+.1f} %)",
                         100 * memory_off_);
    return why_.empty();
  }

  std::optional<trace::Recording> stage(std::int64_t at, std::int32_t rank) {
    if (!alike_) return std::nullopt;
    const auto order = continued(order_a_, at_a_, order_b_, at_b_, at);
    if (!order) return why_ = "their order changes irregularly from stage to stage", std::nullopt;
    Writer writer(*this, at, rank);
    std::vector<std::uint32_t> blocks = head_of(at);
    for (std::uint32_t block : positions_in(order_a_, *order))
      blocks.push_back(block + static_cast<std::uint32_t>(head_));
    for (std::uint32_t block : blocks)
      for (std::uint32_t i = blocks_a_.begin[block]; i < blocks_a_.begin[block + 1]; ++i)
        writer.take(i);
    return writer.done();
  }

 private:
  // The head is the part before the first loop: initialization and the first exchanges with the
  // neighbours. Even and odd stages may do these exchanges in different orders to avoid a deadlock.
  bool same_head(const Blocks& other) const {
    const auto end = static_cast<std::ptrdiff_t>(head_);
    return other.letters.size() >= head_ &&
           std::is_permutation(blocks_a_.letters.begin(), blocks_a_.letters.begin() + end,
                               other.letters.begin());
  }

  // The head in the order of the nearest recorded stage with the same parity.
  std::vector<std::uint32_t> head_of(std::int64_t at) const {
    const Stage* like = nullptr;
    for (const Stage& stage : stages_)
      if ((stage.at - at) % 2 == 0 && same_head(stage.blocks) &&
          (like == nullptr || std::abs(stage.at - at) < std::abs(like->at - at)))
        like = &stage;
    std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // by letter, the last one first
    for (std::size_t i = head_; i-- > 0;)
      places[blocks_a_.letters[i]].push_back(static_cast<std::uint32_t>(i));
    std::vector<std::uint32_t> blocks;
    for (std::size_t i = 0; i < head_; ++i) {
      auto& left = places[like != nullptr ? like->blocks.letters[i] : blocks_a_.letters[i]];
      blocks.push_back(left.back());
      left.pop_back();
    }
    return blocks;
  }

  // Determines which communicators all stages share: those that have the same members in both
  // recordings. For the others, the ranks of corresponding members differ by as much as the two
  // recorded ranks.
  bool place_communicators() {
    if (a_.communicators.size() != b_.communicators.size()) return false;
    const std::int32_t apart = b_.identity.rank - a_.identity.rank;
    for (std::size_t slot = 0; slot < a_.communicators.size(); ++slot) {
      const trace::Communicator &x = a_.communicators[slot], &y = b_.communicators[slot];
      if (x.size != y.size) return false;
      const bool same = x.ranks.empty() ? x.id == y.id : x.ranks == y.ranks;
      places_.push_back({same});
      if (same) continue;
      if (x.rank != y.rank) return false;
      for (std::size_t i = 0; i < x.ranks.size(); ++i)
        if (y.ranks.size() != x.ranks.size() || y.ranks[i] - x.ranks[i] != apart) return false;
    }
    return true;
  }

  // Runs the tensors of the recorded stage through the model of the allocator. If the model
  // requests exactly the recorded segments at the recorded places, it can also be used for other
  // stages.
  bool follow_memory() {
    const auto& records = a_.records;
    replaced_.resize(records.size());
    empties_.resize(records.size());
    CachingAllocator allocator;
    bool any = false;
    std::unordered_map<std::uint32_t, std::uint64_t> own;  // number of a recorded segment → bytes
    std::multiset<std::uint64_t> emptied;                  // what empty_cache() should release now
    std::uint32_t taken = no_link;                         // the last segment
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (takes_device_memory(records, i)) taken = i;
      if (records[i].kind == Kind::tensor_allocate) {
        any = true;
        if (!emptied.empty()) return false;
        const std::uint64_t bytes =
            allocator.allocate(i, links_->bytes(links_->family(0, i)), records[i].stream);
        const bool recorded = taken != no_link && taken + 2 == i;
        if (recorded != (bytes > 0)) return false;
        if (recorded && std::bit_cast<trace::Wide>(records[taken - 1]).y != bytes) return false;
        if (!recorded) continue;
        replaced_[taken - 1] = replaced_[taken] = true;
        own[records[taken].value] = bytes;
      } else if (records[i].kind == Kind::tensor_release) {
        if (links_->link(0, i) != no_link) allocator.release(links_->link(0, i));
      } else if (gives_device_memory(records, i)) {
        // Called by the program, in most cases once before the first step. Other libraries release
        // memory of their own. Else the device was full, which the model does not follow.
        const auto segment = own.find(records[i].value);
        if (segment == own.end()) continue;
        if (emptied.empty()) {
          for (const auto& released : allocator.empty_cache()) emptied.insert(released.bytes);
          empties_[i] = true;
        }
        const auto released = emptied.find(segment->second);
        if (released == emptied.end()) return false;
        emptied.erase(released);
        own.erase(segment);
        replaced_[i - 1] = replaced_[i] = true;
      }
    }
    return any && emptied.empty();
  }

  // Derives the other recorded stage as if it had not run, to check whether its waits are correct
  // and how large the error of its memory is. If that is more accurate than the model of the
  // allocator, segments stay where the stand-in requested them, in the first iterations of loops.
  void try_other() {
    auto off = [&](bool by_model) {
      knows_memory_ = by_model;
      const auto made = stage(at_b_, b_.identity.rank);
      waits_known_ = made && waits_of(*made) == waits_of(b_);
      const auto wanted = static_cast<double>(peak_memory(b_));
      return made && wanted > 0 ? static_cast<double>(peak_memory(*made)) / wanted - 1 : 1.0;
    };
    const double kept = off(false), modelled = follow_memory() ? off(true) : 1.0;
    knows_memory_ = std::abs(modelled) <= std::abs(kept) && modelled < 1;
    memory_off_ = knows_memory_ ? modelled : kept;
  }

  // Numbers of segments that the stand-in did not request; those of a recording end far below.
  static constexpr std::uint32_t not_recorded = 0x80000000;

  // Assembles a recording, record by record.
  class Writer {
   public:
    Writer(const StageGap& gap, std::int64_t at, std::int32_t rank) : s_(gap) {
      const trace::Recording& a = s_.a_;
      out_.identity = a.identity;
      out_.identity.rank = rank;
      const std::int32_t per_node =
          a.identity.node > 0 ? (a.identity.rank - a.identity.local_rank) / a.identity.node : 0;
      if (per_node > 0)
        out_.identity.node = rank / per_node, out_.identity.local_rank = rank % per_node;
      out_.ops = a.ops, out_.strings = a.strings, out_.graphs = a.graphs;
      out_.unimplemented_calls = a.unimplemented_calls, out_.warnings = a.warnings;
      out_.complete = a.complete;
      out_.records.reserve(a.records.size());
      latest_.resize(a.records.size());
      // The own rank within a communicator increases linearly from stage to stage.
      for (std::size_t slot = 0; slot < a.communicators.size(); ++slot) {
        trace::Communicator c = a.communicators[slot];
        if (s_.places_[slot].shared) {
          const std::int64_t apart = s_.b_.communicators[slot].rank - c.rank;
          shift_.push_back(
              static_cast<std::int32_t>(apart * (at - s_.at_a_) / (s_.at_b_ - s_.at_a_)));
          if (!c.ranks.empty()) {
            const auto own = std::find(c.ranks.begin(), c.ranks.end(), rank);
            if (own != c.ranks.end())
              shift_.back() = static_cast<std::int32_t>(own - c.ranks.begin()) - c.rank;
          }
          c.rank += shift_.back();
        } else {
          shift_.push_back(0);
          for (std::int32_t& member : c.ranks) member += rank - a.identity.rank;
          c.id = s_.id_of(c, slot, at);
        }
        out_.communicators.push_back(std::move(c));
      }
    }

    void take(std::uint32_t i) {
      const auto& records = s_.a_.records;
      Record r = records[i];
      const std::uint32_t family = s_.links_->family(0, i);
      switch (r.kind) {
        case Kind::wide:
          if (i + 1 < records.size() && records[i + 1].kind == Kind::tensor_allocate) return;
          if (s_.knows_memory_ && s_.replaced_[i]) return;
          out_.records.push_back(r);
          return;
        case Kind::allocate:
          if (!s_.knows_memory_ || !s_.replaced_[i]) break;
          put_off(r);
          return;
        case Kind::release:
          if (!s_.knows_memory_ || !s_.replaced_[i]) break;
          if (s_.empties_[i]) empty_cache(r);
          put_off(r);
          return;
        case Kind::tensor_allocate:
          if (s_.knows_memory_) allocate(i, family, r);
          return;
        case Kind::tensor_release:
          if (s_.knows_memory_) allocator_.release(meant(i));
          return;
        case Kind::event_record:
          r.value = latest_[i] = ++events_;
          made_[family].push_back(r.value);
          break;
        case Kind::stream_wait_event:
        case Kind::event_synchronize:
        case Kind::event_query:
          r.value = meant(i);
          break;
        case Kind::point_to_point:
          r.value = moved(r.value, shift_[r.aux]);
          break;
        default:
          break;
      }
      put(r);
    }

    trace::Recording done() { return std::move(out_); }

   private:
    // The host time of an omitted record is added to the thread's next record.
    void put_off(const Record& r) {
      late_[r.thread] += r.host_ns;
      late_flags_[r.thread] |= r.flags & trace::resumed;
    }
    void put(Record r) {
      if (auto late = late_.find(r.thread); late != late_.end()) {
        r.host_ns += static_cast<std::uint32_t>(
            std::min<std::uint64_t>(late->second, UINT32_MAX - r.host_ns));
        r.flags |= late_flags_[r.thread];
        late_.erase(late), late_flags_.erase(r.thread);
      }
      out_.records.push_back(r);
    }

    void allocate(std::uint32_t i, std::uint32_t family, const Record& r) {
      const std::uint64_t bytes =
          allocator_.allocate(++tensors_, s_.links_->bytes(family), r.stream);
      made_[family].push_back(tensors_);
      latest_[i] = tensors_;
      if (bytes == 0) return;
      trace::Wide wide;
      wide.thread = r.thread, wide.y = bytes;
      wide.x = static_cast<std::uint32_t>(trace::MemoryKind::device);
      out_.records.push_back(std::bit_cast<Record>(wide));
      Record segment;
      segment.kind = Kind::allocate, segment.thread = r.thread;
      segment.value = not_recorded + segments_++;
      put(segment);
    }

    void empty_cache(const Record& r) {
      for (const auto& released : allocator_.empty_cache()) {
        trace::Wide wide;
        wide.thread = r.thread, wide.y = released.bytes;
        wide.x = static_cast<std::uint32_t>(trace::MemoryKind::device);
        out_.records.push_back(std::bit_cast<Record>(wide));
        Record segment;
        segment.kind = Kind::release, segment.thread = r.thread;
        segment.value = not_recorded + released.number;
        put(segment);
      }
    }

    // The event or tensor that a record refers to; 0: none. If the recorded stages agree, it is
    // found by its number in the family. Else it is the last one made from the record that the
    // stand-in's record refers to, else the last one of the family.
    std::uint32_t meant(std::uint32_t i) {
      const std::uint32_t link = s_.links_->link(0, i);
      if (link == no_link) return 0;
      const std::uint32_t family = s_.links_->family(0, link);
      const auto& made = made_[family];
      const std::uint32_t target = s_.links_->target(family, referred_[family]++);
      if (target < made.size()) return made[target];
      if (latest_[link] != 0) return latest_[link];
      return made.empty() ? 0 : made.back();
    }

    // The op with its peer shifted by `by`.
    std::uint32_t moved(std::uint32_t op, std::int32_t by) {
      if (by == 0) return op;
      const auto [at, fresh] =
          moved_.try_emplace({op, by}, static_cast<std::uint32_t>(out_.ops.size()));
      if (fresh) {
        out_.ops.push_back(out_.ops[op]);
        std::get<PointToPoint>(out_.ops.back().work).peer += by;
      }
      return at->second;
    }

    const StageGap& s_;
    trace::Recording out_;
    std::vector<std::int32_t> shift_;  // by slot: own rank minus that of the stand-in
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> moved_;
    std::vector<std::uint32_t> latest_;  // by record of the stand-in: the last one made from it
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> made_;  // by family
    std::unordered_map<std::uint32_t, std::uint32_t> referred_;
    std::unordered_map<std::uint16_t, std::uint64_t> late_;
    std::unordered_map<std::uint16_t, std::uint8_t> late_flags_;
    CachingAllocator allocator_;
    std::uint32_t events_{}, tensors_{}, segments_{};
  };

  // The id of a stage's own communicator: as recorded by another rank, if one has it.
  std::uint64_t id_of(const trace::Communicator& c, std::size_t slot, std::int64_t at) const {
    if (c.ranks.empty()) return mix(mix(c.id, slot), static_cast<std::uint64_t>(at));
    auto same = [&](const trace::Communicator& other) { return other.ranks == c.ranks; };
    // If several have the same members, the n-th on one rank is the n-th on every rank.
    std::size_t before = 0;
    for (std::size_t s = 0; s < slot; ++s)
      before += a_.communicators[s].ranks == a_.communicators[slot].ranks;
    for (const trace::Recording* recording : all_) {
      std::size_t n = 0;
      for (const trace::Communicator& other : recording->communicators)
        if (same(other) && n++ == before) return other.id;
    }
    std::uint64_t id = before;
    for (std::int32_t rank : c.ranks) id = mix(id, static_cast<std::uint64_t>(rank));
    return id;
  }

  const std::vector<const trace::Recording*>& all_;
  const std::vector<Stage>& stages_;
  const trace::Recording &a_, &b_;
  std::int64_t at_a_, at_b_;
  const Blocks &blocks_a_, &blocks_b_;
  std::size_t head_{};                         // blocks before the first loop
  std::vector<Repetition> order_a_, order_b_;  // after the head
  std::vector<Place> places_;
  std::optional<Links> links_;
  std::vector<bool> replaced_;  // by record: whether it is a segment of the caching allocator
  std::vector<bool> empties_;   // by record: whether empty_cache() begins to release segments there
  std::string why_{};
  bool alike_{}, knows_memory_{};
  bool waits_known_{};
  double memory_off_{};
};

}  // namespace

DerivedStages derive_stages(const std::vector<trace::Recording>& recordings, Derive what) {
  DerivedStages result;
  std::vector<const trace::Recording*> all;
  for (const trace::Recording& recording : recordings) all.push_back(&recording);
  auto recorded = [&](std::int32_t rank) -> const trace::Recording* {
    const auto at = std::lower_bound(
        all.begin(), all.end(), rank,
        [](const trace::Recording* r, std::int32_t wanted) { return r->identity.rank < wanted; });
    return at != all.end() && (*at)->identity.rank == rank ? *at : nullptr;
  };
  const std::vector<std::int32_t> ranks = stages_of(recordings.front());
  std::vector<Stage> stages;
  std::vector<const trace::Recording*> along;
  for (std::size_t s = 0; s < ranks.size(); ++s)
    if (const trace::Recording* recording = recorded(ranks[s])) {
      stages.push_back({recording, static_cast<std::int64_t>(s)});
      along.push_back(recording);
    }
  if (stages.size() == ranks.size()) return result;
  std::vector<Blocks> blocks = cut_alike(along);
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].blocks = std::move(blocks[i]);
  for (std::size_t k = 0; k + 1 < stages.size(); ++k) {
    const std::int64_t from = stages[k].at, to = stages[k + 1].at;
    if (to - from < 2) continue;
    const trace::Recording &a = *stages[k].recording, &b = *stages[k + 1].recording;
    // A loop that runs at most once in one of the two stages is visible in the other, so both are
    // tried.
    std::optional<StageGap> gap(std::in_place, all, stages, stages[k], stages[k + 1]);
    const bool turned = !gap->alike();
    if (turned) gap.emplace(all, stages, stages[k + 1], stages[k]);
    const trace::Recording& stand_in = turned ? b : a;
    std::size_t good = 0;
    for (std::int64_t s = from + 1; s < to; ++s) {
      const std::int32_t rank = ranks[static_cast<std::size_t>(s)];
      if (what == Derive::ends && s > from + 1 && s < to - 1) {
        // A stage in the middle is missing only if its predecessor is.
        if (!result.needed.empty() &&
            result.needed.back() == ranks[static_cast<std::size_t>(s - 1)])
          result.needed.push_back(rank);
        continue;
      }
      auto made = what == Derive::all || gap->sure() ? gap->stage(s, rank) : std::nullopt;
      if (!made) {
        result.needed.push_back(rank);
        continue;
      }
      if (what == Derive::ends) continue;
      ++good;
      result.recordings.push_back(std::move(*made));
      result.from.push_back(stand_in.identity.rank);
    }
    if (!gap->why().empty())
      result.why = fmt::format("the stages between ranks {} and {} cannot be derived: {}",
                               a.identity.rank, b.identity.rank, gap->why());
    if (good == 0) continue;
    result.notes.push_back(fmt::format(
        "{} of the stages {} to {} of the pipeline did not run: they are assumed to do the work of "
        "rank {} in the order of their place in the schedule{}{}",
        good, from + 1, to - 1, stand_in.identity.rank,
        gap->waits_known() ? "" : "; the messages that they wait for are estimated",
        gap->memory_off() == 0
            ? ""
            : fmt::format("; their memory is estimated ({:+.1f} % off for rank {})",
                          100 * gap->memory_off(), (turned ? a : b).identity.rank)));
  }
  return result;
}

}  // namespace maya::collate
