// The meetings in progress: which parties have arrived, when the last one did, and who waits.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/cause.h"
#include "simulate/program.h"

namespace maya::simulate {

class MeetingTable {
 public:
  explicit MeetingTable(const Plan& plan) : references_(plan.references.size()) {
    meets_.reserve(plan.meets.size());
    for (const Meet& meet : plan.meets) meets_.push_back({0, {}, meet.missing, none});
    for (std::size_t i = 0; i < references_.size(); ++i)
      references_[i].meet = plan.references[i].meet;
  }

  struct Outcome {
    std::uint32_t missing{};  // number of meetings of the range that are not complete
    std::int64_t time{};      // latest arrival at the complete ones
    Cause cause;
  };

  // A party arrives at all meetings of references [first, last). `wake(rank_class, lane, time,
  // cause)` is called for every party that was waiting at a meeting that is now complete.
  template <class Wake>
  Outcome arrive(std::uint32_t first, std::uint32_t last, std::uint32_t rank_class,
                 std::uint32_t lane, std::int64_t now, Cause cause, Wake&& wake) {
    for (std::uint32_t i = first; i < last; ++i) {
      State& meet = meets_[references_[i].meet];
      if (now >= meet.time) meet.time = now, meet.cause = cause;
      --meet.missing;
    }
    Outcome out{0, now, cause};
    for (std::uint32_t i = first; i < last; ++i) {
      State& meet = meets_[references_[i].meet];
      if (meet.missing > 0) {
        references_[i] = {references_[i].meet, meet.waiting, rank_class, lane};
        meet.waiting = i;
        ++out.missing;
        continue;
      }
      for (std::uint32_t w = meet.waiting; w != none; w = references_[w].next)
        wake(references_[w].rank_class, references_[w].lane, meet.time, meet.cause);
      meet.waiting = none;
      if (meet.time > out.time) out.time = meet.time, out.cause = meet.cause;
    }
    return out;
  }

 private:
  struct State {
    std::int64_t time{};
    Cause cause;
    std::uint32_t missing{}, waiting{none};
  };
  struct Reference {
    std::uint32_t meet{}, next{none}, rank_class{}, lane{};
  };
  std::vector<State> meets_;
  std::vector<Reference> references_;
};

}  // namespace maya::simulate
