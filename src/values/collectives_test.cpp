// Members of one communicator as threads of nobody: each has its own memory and its own end of the
// exchange, in one process.
#include "values/collectives.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "values/reduction.h"

namespace maya::values {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Rank {
  static constexpr std::uint64_t span = 1 << 20;
  void* map = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::uint64_t base = reinterpret_cast<std::uint64_t>(map);
  std::uint64_t in = base, out = base + span / 2;
  KnownBytes values{base, span};
  Member member;
  ~Rank() { munmap(map, span); }

  void put(const Numbers& numbers) { values.store(in, numbers.data(), numbers.size() * 8); }
  // Empty if any is unknown.
  Numbers get(std::uint64_t address, std::size_t count) {
    Numbers numbers(count);
    return values.load(numbers.data(), address, count * 8) ? numbers : Numbers{};
  }
};

class Collectives : public ::testing::Test {
 protected:
  std::string directory = [] {
    std::string path = ::testing::TempDir() + "collectives-XXXXXX";
    return std::string(mkdtemp(path.data()));
  }();
  std::vector<std::shared_ptr<Exchange>> exchanges;
  std::vector<std::unique_ptr<Rank>> ranks;

  void communicator(int size) {
    for (int rank = 0; rank < size; ++rank) {
      exchanges.push_back(std::make_shared<Exchange>(directory, 7, rank, size));
      ranks.push_back(std::make_unique<Rank>());
      ranks.back()->member = Member(7, rank, size, exchanges.back());
    }
  }
  ~Collectives() override { std::filesystem::remove_all(directory); }

  void all(CollectiveKind kind, std::uint64_t send, std::uint64_t receive,
           ReduceOp reduce = ReduceOp::sum, int root = -1,
           const std::shared_ptr<SentAsRoot>& group = nullptr) {
    for (auto& rank : ranks) one(*rank, kind, send, receive, reduce, root, group);
  }
  static void one(Rank& r, CollectiveKind kind, std::uint64_t send, std::uint64_t receive,
                  ReduceOp reduce = ReduceOp::sum, int root = -1,
                  const std::shared_ptr<SentAsRoot>& group = nullptr) {
    r.member.collective({kind, r.in, r.out, send * 8, receive * 8, DType::i64, reduce, root},
                        r.values, group);
  }
};

TEST_F(Collectives, AllReduceAddsWhatAllMembersKnow) {
  communicator(3);
  for (std::size_t i = 0; i < 3; ++i) ranks[i]->put({static_cast<std::int64_t>(i), 10});
  all(CollectiveKind::all_reduce, 2, 2);
  for (auto& rank : ranks) EXPECT_EQ(rank->get(rank->out, 2), (Numbers{3, 30}));
}

TEST_F(Collectives, OneUnknownContributionMakesAReductionUnknown) {
  communicator(2);
  ranks[0]->put({1});
  all(CollectiveKind::all_reduce, 1, 1);
  EXPECT_TRUE(ranks[0]->get(ranks[0]->out, 1).empty());
}

TEST_F(Collectives, AllGatherKeepsTheOrderOfRanks) {
  communicator(3);
  for (std::size_t i = 0; i < 3; ++i) ranks[i]->put({static_cast<std::int64_t>(i) + 5});
  all(CollectiveKind::all_gather, 1, 3);
  EXPECT_EQ(ranks[1]->get(ranks[1]->out, 3), (Numbers{5, 6, 7}));
}

TEST_F(Collectives, ReduceScatterAndAllToAllGiveEachRankItsPart) {
  communicator(2);
  ranks[0]->put({1, 2}), ranks[1]->put({10, 20});
  all(CollectiveKind::reduce_scatter, 2, 1, ReduceOp::max);
  EXPECT_EQ(ranks[0]->get(ranks[0]->out, 1), (Numbers{10}));
  EXPECT_EQ(ranks[1]->get(ranks[1]->out, 1), (Numbers{20}));
  all(CollectiveKind::all_to_all, 2, 2);
  EXPECT_EQ(ranks[0]->get(ranks[0]->out, 2), (Numbers{1, 10}));
  EXPECT_EQ(ranks[1]->get(ranks[1]->out, 2), (Numbers{2, 20}));
}

TEST_F(Collectives, OnlyTheRootOfAReduceReceives) {
  communicator(2);
  ranks[0]->put({1}), ranks[1]->put({2});
  ranks[1]->values.fill(ranks[1]->out, "\x09", 1, 8);
  all(CollectiveKind::reduce, 1, 1, ReduceOp::sum, 0);
  EXPECT_EQ(ranks[0]->get(ranks[0]->out, 1), (Numbers{3}));
  EXPECT_EQ(ranks[1]->get(ranks[1]->out, 1), (Numbers{0x0909090909090909}));
}

TEST_F(Collectives, LargePayloadsBecomeUnknown) {
  communicator(2);
  Rank& r = *ranks[0];
  r.values.fill(r.out, "\x01", 1, 1 << 18);
  r.member.collective(
      {CollectiveKind::all_reduce, r.in, r.out, 1 << 17, 1 << 17, DType::f32, ReduceOp::sum, -1},
      r.values, nullptr);
  EXPECT_FALSE(r.values.any(r.out, 1 << 17));
  EXPECT_TRUE(r.values.any(r.out + (1 << 17), 1 << 17));
}

// What was gathered is promised first; that none of it is known must not be lost on the way.
TEST_F(Collectives, UnknownResultsStayUnknownWhenTheyAreSentOn) {
  communicator(2);
  all(CollectiveKind::all_gather, 1, 2);
  for (auto& rank : ranks)
    rank->member.collective({CollectiveKind::all_gather, rank->out, rank->out + 64, 16, 32,
                             DType::i64, ReduceOp::sum, -1},
                            rank->values, nullptr);
  EXPECT_TRUE(ranks[0]->get(ranks[0]->out + 64, 4).empty());
}

TEST_F(Collectives, LargeResultsAreUnknownToMembersThatKnowNothing) {
  communicator(2);
  Rank& r = *ranks[0];
  constexpr std::uint64_t large = looked_at_unknown + 8;
  const auto before = reinterpret_cast<std::uint64_t>(
      mmap(nullptr, 2 * large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  KnownBytes values(before, 2 * large);
  r.member.collective(
      {CollectiveKind::all_gather, before, before, large / 2, large, DType::u8, ReduceOp::sum, -1},
      values, nullptr);
  EXPECT_FALSE(values.any(before, large));  // nothing is promised either
  munmap(reinterpret_cast<void*>(before), 2 * large);
}

TEST_F(Collectives, MessagesArriveInTheOrderTheyWereSent) {
  communicator(2);
  Rank &a = *ranks[0], &b = *ranks[1];
  for (std::int64_t number : {4, 5}) {
    a.put({number});
    a.member.send(a.in, 8, DType::i64, 1, a.values);
  }
  b.member.receive(b.out, 8, DType::i64, 0, b.values);
  b.member.receive(b.out + 8, 8, DType::i64, 0, b.values);
  EXPECT_EQ(b.get(b.out, 2), (Numbers{4, 5}));
}

TEST_F(Collectives, AnAbsentRankSendsWhatItIsSent) {
  communicator(2);
  exchanges[0]->declare_absent(1);
  Rank& a = *ranks[0];
  for (std::int64_t number : {4, 5}) {
    a.put({number});
    a.member.send(a.in, 8, DType::i64, 1, a.values);
  }
  a.member.receive(a.out, 8, DType::i64, 1, a.values);
  a.member.receive(a.out + 8, 8, DType::i64, 1, a.values);
  a.member.receive(a.out + 16, 8, DType::i64, 1, a.values);
  EXPECT_EQ(a.get(a.out, 2), (Numbers{4, 5}));
  EXPECT_TRUE(a.get(a.out + 16, 1).empty());  // it was sent no third one
}

TEST_F(Collectives, ARankMaySendToItself) {
  communicator(2);
  Rank& a = *ranks[0];
  a.put({8});
  a.member.send(a.in, 8, DType::i64, 0, a.values);
  a.member.receive(a.out, 8, DType::i64, 0, a.values);
  EXPECT_EQ(a.get(a.out, 1), (Numbers{8}));
}

// Where ranks are absent, an absent root sends what the receiver sends in the same group of
// broadcasts, and leaves the buffer as it was outside of one.
TEST_F(Collectives, BroadcastsOfAnAbsentRoot) {
  communicator(2);
  exchanges[0]->declare_absent(1);
  Rank& a = *ranks[0];
  a.values.fill(a.out, "\x02", 1, 8);
  one(a, CollectiveKind::broadcast, 1, 1, ReduceOp::sum, 1);
  EXPECT_EQ(a.get(a.out, 1), (Numbers{0x0202020202020202}));
  auto group = std::make_shared<SentAsRoot>();
  a.put({6});
  one(a, CollectiveKind::broadcast, 1, 1, ReduceOp::sum, 0, group);
  a.member.collective(
      {CollectiveKind::broadcast, a.in, a.out + 64, 8, 8, DType::i64, ReduceOp::sum, 1}, a.values,
      group);
  EXPECT_EQ(a.get(a.out + 64, 1), (Numbers{6}));
}

TEST_F(Collectives, OneMemberCopies) {
  ranks.push_back(std::make_unique<Rank>());
  ranks[0]->put({3});
  all(CollectiveKind::all_reduce, 1, 1);
  EXPECT_EQ(ranks[0]->get(ranks[0]->out, 1), (Numbers{3}));
}

TEST(Reduction, AveragesAndRefusesHalves) {
  const float a[2] = {1, 4}, b[2] = {2, 8};
  std::vector<std::vector<char>> in;
  for (const float* p : {a, b})
    in.emplace_back(reinterpret_cast<const char*>(p), reinterpret_cast<const char*>(p + 2));
  float out = 0;
  ASSERT_TRUE(reduce_contributions(DType::f32, ReduceOp::average, in, 4, &out, 4));
  EXPECT_EQ(out, 6);
  EXPECT_FALSE(reduce_contributions(DType::f16, ReduceOp::sum, in, 0, &out, 4));
}

}  // namespace
}  // namespace maya::values
