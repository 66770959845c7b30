#include "collate/stages.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "collate/blocks.h"
#include "collate/caching_allocator.h"
#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using collate::CachingAllocator;
using testing::RecordingBuilder;
using trace::Kind;

// The actions of a stage in a step, in order.
struct Action {
  enum What : std::uint8_t { forward, backward, weights } what;
  int chunk{};
};
using Schedule = std::function<std::vector<Action>(int stage)>;

// A pipeline of `stages`, each with `block` data-parallel ranks.
struct Pipeline {
  int stages, block;
  Schedule schedule;
  std::vector<std::int64_t> kept;  // bytes of the tensors that a forward pass keeps

  // Writes one rank as it would be recorded, with PyTorch's allocator behind its tensors.
  class Rank {
   public:
    Rank(const Pipeline& pipeline, int stage)
        : pipeline_(pipeline),
          stage_(stage),
          r_(stage * pipeline.block, pipeline.stages * pipeline.block) {
      std::vector<std::int32_t> row, own;
      for (int s = 0; s < pipeline.stages; ++s) row.push_back(s * pipeline.block);
      for (int i = 0; i < pipeline.block; ++i) own.push_back(stage * pipeline.block + i);
      row_ = r_.communicator(1, row),
      own_ = r_.communicator(100 + static_cast<unsigned>(stage), own);
      r_.recording().communicators[row_].ranks = row,
      r_.recording().communicators[own_].ranks = own;
    }

    trace::Recording steps(int count) {
      for (int p = 0; p < 4; ++p) tensor(3 << 20), r_.kernel(50);  // parameters
      for (int step = 0; step < count; ++step) {
        for (const Action& action : pipeline_.schedule(stage_)) act(action);
        r_.thread(0);
        const auto gradient = tensor(5 << 20);
        r_.collective(own_, 70);
        release(gradient);
        r_.optimizer(90);
      }
      return r_.done();
    }

   private:
    void act(const Action& action) {
      const int chunk = action.chunk;
      switch (action.what) {
        case Action::forward:
          r_.thread(0);
          if (stage_ > 0) message(-1, false);
          for (std::size_t i = 0; i < pipeline_.kept.size(); ++i) {
            kept_[chunk].push_back(tensor(pipeline_.kept[i]));
            const auto passing = tensor(700 << 10);
            r_.kernel(10 + static_cast<std::int64_t>(i)).collective(own_, 5);
            release(passing);
          }
          if (stage_ + 1 < pipeline_.stages) message(1, true);
          break;
        case Action::backward:
          r_.thread(0);
          if (stage_ + 1 < pipeline_.stages) message(1, false);
          r_.thread(1);
          for (std::size_t i = 0; i < pipeline_.kept.size(); ++i) {
            const auto gradient = tensor(pipeline_.kept[i] / 2 + (6 << 20));
            r_.kernel(20 + static_cast<std::int64_t>(i));
            release(gradient);
            release(kept_[chunk].front());
            kept_[chunk].erase(kept_[chunk].begin());
          }
          r_.thread(0);
          if (stage_ > 0) message(-1, true);
          break;
        case Action::weights:
          r_.thread(1).kernel(30).kernel(31);
          break;
      }
    }

    void message(int distance, bool send) {
      ++event_;
      r_.on(0).record(event_).on(1).wait(event_);
      r_.add(Kind::group_begin);
      send ? r_.send(row_, stage_ + distance, 8) : r_.receive(row_, stage_ + distance, 8);
      r_.add(Kind::group_end);
      r_.record(++event_);
      if (!send) r_.on(0).wait(event_);
      r_.on(0);
    }

    std::uint32_t tensor(std::int64_t bytes) {
      // Like PyTorch, reuses every address that is not in use.
      std::uint32_t address = 0;
      while (used_[++address]) {
      }
      used_[address] = true;
      if (const auto segment = allocator_.allocate(address, static_cast<std::uint64_t>(bytes), 0))
        r_.wide(Kind::allocate, trace::MemoryKind::device, segment, ++segments_);
      r_.recording().records.push_back(std::bit_cast<trace::Record>(
          trace::Wide{Kind::wide, 0, 0, 0, static_cast<std::uint64_t>(bytes)}));
      trace::Record record;
      record.kind = Kind::tensor_allocate, record.value = address;
      r_.recording().records.push_back(record);
      return address;
    }
    void release(std::uint32_t address) {
      used_[address] = false;
      allocator_.release(address);
      trace::Record record;
      record.kind = Kind::tensor_release, record.value = address;
      r_.recording().records.push_back(record);
    }

    const Pipeline& pipeline_;
    int stage_;
    RecordingBuilder r_;
    std::uint16_t row_{}, own_{};
    std::uint32_t event_{}, segments_{};
    std::map<int, std::vector<std::uint32_t>> kept_;  // by chunk, oldest first
    std::map<std::uint32_t, bool> used_;
    CachingAllocator allocator_;
  };

  trace::Recording record(int stage) const { return Rank(*this, stage).steps(3); }
};

std::vector<Action> repeated(const std::vector<Action>& actions, int count) {
  std::vector<Action> result;
  for (int i = 0; i < count; ++i) result.insert(result.end(), actions.begin(), actions.end());
  return result;
}
std::vector<Action> operator+(std::vector<Action> a, const std::vector<Action>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

constexpr Action F{Action::forward}, B{Action::backward}, W{Action::weights};

Schedule one_forward_one_backward(int stages, int micro_batches) {
  return [=](int stage) {
    const int warm = std::min(stages - stage - 1, micro_batches);
    return repeated({F}, warm) + repeated({F, B}, micro_batches - warm) + repeated({B}, warm);
  };
}

// Chunks in rounds of as many micro-batches as there are stages.
Schedule interleaved(int stages, int micro_batches, int chunks) {
  return [=](int stage) {
    const int count = micro_batches * chunks;
    const int warm = std::min(count, (stages - stage - 1) * 2 + (chunks - 1) * stages);
    auto chunk = [=](int k) { return k % (stages * chunks) / stages; };
    std::vector<Action> actions;
    for (int k = 0; k < count + warm; ++k) {
      if (k < count) actions.push_back({Action::forward, chunk(k)});
      if (k >= warm) actions.push_back({Action::backward, chunks - 1 - chunk(k - warm)});
    }
    return actions;
  };
}

Schedule zero_bubble(int stages, int micro_batches) {
  return [=](int stage) {
    const int warm = stages - stage - 1;
    return repeated({F}, warm) + repeated({F, B}, stage + 1) +
           repeated({F, B, W}, micro_batches - stages) + repeated({B, W}, warm) +
           repeated({W}, stage + 1);
  };
}

std::vector<trace::Recording> some(const Pipeline& pipeline, const std::vector<int>& stages) {
  std::vector<trace::Recording> recordings;
  for (int stage : stages) recordings.push_back(pipeline.record(stage));
  return recordings;
}

// What each wait is for, by the number of the event's record.
std::vector<std::int64_t> waits(const trace::Recording& recording) {
  std::map<std::uint32_t, std::int64_t> at;
  std::vector<std::int64_t> result;
  std::int64_t number = 0;
  for (const trace::Record& r : recording.records) {
    if (r.kind == Kind::event_record) at[r.value] = number++;
    if (r.kind == Kind::stream_wait_event)
      result.push_back(at.contains(r.value) ? at[r.value] : -1);
  }
  return result;
}

std::vector<std::uint64_t> segments(const trace::Recording& recording) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 1; i < recording.records.size(); ++i)
    if (recording.records[i].kind == Kind::allocate)
      result.push_back(std::bit_cast<trace::Wide>(recording.records[i - 1]).y);
  return result;
}

void expect_same(const trace::Recording& derived, const trace::Recording& recorded) {
  const trace::Recording* both[] = {&derived, &recorded};
  const auto blocks = collate::cut_alike(both);
  EXPECT_EQ(blocks[0].letters, blocks[1].letters);
  EXPECT_EQ(waits(derived), waits(recorded));
  EXPECT_EQ(segments(derived), segments(recorded));
  ASSERT_EQ(derived.communicators.size(), recorded.communicators.size());
  for (std::size_t c = 0; c < derived.communicators.size(); ++c) {
    EXPECT_EQ(derived.communicators[c].rank, recorded.communicators[c].rank);
    EXPECT_EQ(derived.communicators[c].ranks, recorded.communicators[c].ranks);
  }
}

void expect_derived(const Pipeline& pipeline) {
  const int last = pipeline.stages - 1;
  const auto derived =
      collate::derive_stages(some(pipeline, {0, 1, pipeline.stages / 2, last - 1, last}));
  ASSERT_EQ(derived.needed, std::vector<std::int32_t>());
  ASSERT_EQ(derived.recordings.size(), static_cast<std::size_t>(pipeline.stages - 5));
  for (const trace::Recording& one : derived.recordings) {
    SCOPED_TRACE(one.identity.rank);
    expect_same(one, pipeline.record(one.identity.rank / pipeline.block));
  }
}

TEST(Stages, OneForwardOneBackward) {
  expect_derived({8, 2, one_forward_one_backward(8, 16), {4 << 20, 9 << 20}});
}

TEST(Stages, Interleaved) { expect_derived({8, 1, interleaved(8, 16, 2), {4 << 20, 30 << 20}}); }

TEST(Stages, ZeroBubble) { expect_derived({8, 4, zero_bubble(8, 24), {12 << 20}}); }

TEST(Stages, RandomTensorSizes) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::int64_t> kept;
    for (int i = 0, n = 1 + static_cast<int>(random() % 4); i < n; ++i)
      kept.push_back(static_cast<std::int64_t>((1 + random() % 60) << 19));
    const int stages = 6 + static_cast<int>(random() % 6);
    SCOPED_TRACE(round);
    expect_derived({stages, 2, one_forward_one_backward(stages, stages * 2), kept});
  }
}

TEST(Stages, DerivedStagesGiveTheSameJobAsRecordedOnes) {
  const Pipeline pipeline{8, 2, one_forward_one_backward(8, 12), {4 << 20}};
  auto whole = collate::collate(some(pipeline, {0, 1, 2, 3, 4, 5, 6, 7})),
       part = collate::collate(some(pipeline, {0, 1, 4, 6, 7}));
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(part->classes.size(), 8u);
  EXPECT_EQ(part->steps(), whole->steps());
  for (std::size_t c = 0; c < 8; ++c) {
    EXPECT_EQ(part->classes[c].ranks, whole->classes[c].ranks);
    EXPECT_EQ(part->classes[c].derived_from >= 0, c == 2 || c == 3 || c == 5);
    ASSERT_EQ(part->classes[c].channels.size(), whole->classes[c].channels.size());
    for (std::size_t k = 0; k < part->classes[c].channels.size(); ++k) {
      EXPECT_EQ(part->classes[c].channels[k].peer_class, whole->classes[c].channels[k].peer_class);
      EXPECT_EQ(part->classes[c].channels[k].peer_channel,
                whole->classes[c].channels[k].peer_channel);
    }
  }
}

// Stage 5 has one more layer, so the stages around it cannot be derived across it.
TEST(Stages, DifferentStageIsDetectedAndRun) {
  const Pipeline usual{12, 1, one_forward_one_backward(12, 24), {4 << 20}};
  const Pipeline other{12, 1, one_forward_one_backward(12, 24), {4 << 20, 4 << 20}};
  auto record = [&](int stage) { return (stage >= 5 ? other : usual).record(stage); };
  std::vector<int> ran{0, 1, 6, 10, 11};
  for (int round = 0; round < 4; ++round) {
    std::vector<trace::Recording> recordings;
    for (int stage : ran) recordings.push_back(record(stage));
    const auto more = collate::more_ranks(recordings).ranks;
    if (round == 0) {
      EXPECT_EQ(more, (std::vector<std::int32_t>{2, 3, 5}));
    }
    if (more.empty()) break;
    ran.insert(ran.end(), more.begin(), more.end());
    std::sort(ran.begin(), ran.end());
  }
  EXPECT_LT(ran.size(), 10u);
  std::vector<trace::Recording> recordings;
  for (int stage : ran) recordings.push_back(record(stage));
  const auto derived = collate::derive_stages(recordings);
  EXPECT_TRUE(derived.needed.empty());
  for (const auto& one : derived.recordings) expect_same(one, record(one.identity.rank));
}

TEST(Stages, WithoutTensorRecordsSegmentsStayWhereTheStandInRequestedThem) {
  const Pipeline pipeline{8, 1, one_forward_one_backward(8, 16), {4 << 20}};
  auto recordings = some(pipeline, {0, 1, 4, 6, 7});
  for (auto& recording : recordings)
    std::erase_if(recording.records, [](const trace::Record& r) {
      return r.kind == Kind::tensor_allocate || r.kind == Kind::tensor_release;
    });
  for (auto& recording : recordings) {  // their wide halves
    auto& records = recording.records;
    for (std::size_t i = 0; i + 1 < records.size();)
      if (records[i].kind == Kind::wide && records[i + 1].kind != Kind::allocate)
        records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
  }
  const auto derived = collate::derive_stages(recordings);
  ASSERT_EQ(derived.recordings.size(), 3u);
  for (const auto& one : derived.recordings) {
    const auto memory = segments(one), wanted = segments(pipeline.record(one.identity.rank));
    EXPECT_NEAR(static_cast<double>(memory.size()), static_cast<double>(wanted.size()), 2);
  }
}

}  // namespace
}  // namespace maya
