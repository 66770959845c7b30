#include "values/compute.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <numeric>

#include "values/constant.h"

namespace maya::values {
namespace {

using Kind = Semantics::Kind;
constexpr std::uint64_t limit = 1 << 20;

class Compute : public ::testing::Test {
 protected:
  static constexpr std::uint64_t span = 1 << 20;
  void* map = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::uint64_t base = reinterpret_cast<std::uint64_t>(map);
  KnownBytes values{base, span};

  ~Compute() override { munmap(map, span); }

  Semantics::Operand at(int slot, std::int64_t n, DType type = DType::i64) const {
    Semantics::Operand o;
    o.dtype = type;
    o.address = base + static_cast<std::uint64_t>(slot) * 4096;
    o.rank = 1;
    o.size[0] = n;
    o.stride[0] = bits(type) / 8;
    return o;
  }
  Semantics::Operand put(int slot, const std::vector<std::int64_t>& data) {
    auto o = at(slot, static_cast<std::int64_t>(data.size()));
    values.store(o.address, data.data(), data.size() * 8);
    return o;
  }
  // Empty if any is unknown.
  std::vector<std::int64_t> get(const Semantics::Operand& o) {
    std::vector<std::int64_t> data(static_cast<std::size_t>(o.size[0]));
    if (!values.load(data.data(), o.address, data.size() * 8)) return {};
    return data;
  }
  using List = std::vector<std::int64_t>;
};

TEST_F(Compute, GathersAndForgetsWhatComesFromUnknownBytes) {
  Semantics s;
  s.kind = Kind::gather;
  s.outputs = {at(2, 2)};
  s.inputs = {put(0, {3, 9, 4, 1}), put(1, {1, -1})};
  s.inputs[0].size[0] = 2, s.inputs[0].stride[0] = 0;
  s.steps = {{4, 8}};
  compute(s, values, limit);
  EXPECT_EQ(get(s.outputs[0]), (List{9, 1}));
  values.forget(s.inputs[0].address + 8, 8);
  compute(s, values, limit);
  EXPECT_FALSE(values.any(s.outputs[0].address, 8));
  EXPECT_TRUE(values.any(s.outputs[0].address + 8, 8));
}

TEST_F(Compute, FlipsThroughNegativeStridesAndLeavesNothingStale) {
  Semantics s;
  s.kind = Kind::gather;
  s.inputs = {put(0, {1, 2, 3})};
  auto out = put(1, {7, 7, 7});
  s.outputs = {out};
  s.outputs[0].address += 16, s.outputs[0].stride[0] = -8;
  compute(s, values, limit);
  EXPECT_EQ(get(out), (List{3, 2, 1}));
  values.forget(s.inputs[0].address, 24);
  compute(s, values, limit);
  EXPECT_FALSE(values.any(out.address, 24));
}

TEST_F(Compute, ScattersConstantsAndSums) {
  Semantics s;
  s.kind = Kind::scatter;
  s.function = "add";
  auto out = put(0, {0, 0, 0});
  s.outputs = {out};
  s.outputs[0].stride[0] = 0;
  s.inputs = {put(1, {1, 2, 3}), put(2, {1, 1, 2})};
  s.steps = {{3, 8}};
  compute(s, values, limit);
  EXPECT_EQ(get(out), (List{0, 3, 3}));
  s.function = "assign", s.from_constant = true;
  s.inputs.erase(s.inputs.begin());
  s.constant[0] = std::byte{9};
  compute(s, values, limit);
  EXPECT_EQ(get(out), (List{0, 9, 9}));
  values.forget(s.inputs[0].address, 8);  // an unknown index may have hit anything
  compute(s, values, limit);
  EXPECT_FALSE(values.any(out.address, 24));
}

TEST_F(Compute, ScattersIntoAFillThatNobodyHasLookedAt) {
  Semantics s;
  s.kind = Kind::scatter;
  s.function = "assign", s.from_constant = true;
  s.constant[0] = std::byte{1};
  auto out = at(0, 4);
  values.promise(out.address, 32, std::make_shared<Constant>(0));
  s.outputs = {at(0, 2)};
  s.outputs[0].stride[0] = 0;
  s.inputs = {put(1, {1, 3})};
  s.steps = {{4, 8}};
  compute(s, values, limit);
  EXPECT_EQ(get(out), (List{0, 1, 0, 1}));
}

TEST_F(Compute, SearchesSortedRows) {
  Semantics s;
  s.kind = Kind::search;
  s.function = "left";
  s.k = 3;
  s.inputs = {put(0, {3, 6, 9, 1}), put(1, {1, 3, 9, 0, 1, 2})};
  s.outputs = {at(2, 4)};
  compute(s, values, limit);
  EXPECT_EQ(get(s.outputs[0]), (List{1, 2, 2, 0}));  // all in the first row
  s.function = "right", s.from = 2;
  compute(s, values, limit);
  EXPECT_EQ(get(s.outputs[0]), (List{2, 2, 3, 2}));
}

TEST_F(Compute, KeepsATriangle) {
  Semantics s;
  s.kind = Kind::triangle;
  s.function = "lower";
  s.inputs = {put(0, {1, 2, 3, 4})};
  s.outputs = {at(1, 4)};
  for (auto* o : {&s.inputs[0], &s.outputs[0]})
    o->rank = 2, o->size[0] = o->size[1] = 2, o->stride[1] = 2 * o->stride[0];
  compute(s, values, limit);
  EXPECT_EQ(get(at(1, 4)), (List{1, 0, 3, 4}));
  s.function = "upper", s.k = 1;
  compute(s, values, limit);
  EXPECT_EQ(get(at(1, 4)), (List{0, 2, 0, 0}));
}

TEST_F(Compute, ListsNoMoreThanItFound) {
  Semantics s;
  s.kind = Kind::nonzero_write;
  s.inputs = {put(0, {0, 5, 0, 6})};
  s.outputs = {put(1, {8, 8, 8, 8}), at(2, 1)};
  compute(s, values, limit);
  EXPECT_EQ(get(s.outputs[0]), (List{1, 3, 8, 8}));
  EXPECT_EQ(get(s.outputs[1]), (List{2}));
}

TEST_F(Compute, TakesUnknownNumbersForValid) {
  Semantics s;
  s.kind = Kind::compare;
  s.inputs = {at(0, 2, DType::f32)};
  s.outputs = {at(1, 2, DType::boolean)};
  auto verdict = [&](const std::string& function, double scalar) {
    s.function = function, s.scalar = scalar;
    compute(s, values, limit);
    bool truth[2]{};
    return values.load(truth, s.outputs[0].address, 2) ? int{truth[0]} + int{truth[1]} : -1;
  };
  EXPECT_EQ(verdict("ge", 0), 2);
  EXPECT_EQ(verdict("lt", INFINITY), 2);
  EXPECT_EQ(verdict("gt", 0.5), 0);
  s.inputs[0].dtype = DType::i32;  // an index may be anything
  EXPECT_EQ(verdict("ge", 0), -1);
  s.inputs = {at(0, 2, DType::f32), at(0, 2, DType::f32)};
  EXPECT_EQ(verdict("ne", 0), 0);  // isnan
  s.inputs[1] = at(3, 2, DType::f32);
  EXPECT_EQ(verdict("ne", 0), -1);
  s.kind = Kind::reduce;
  s.inputs = {at(0, 2, DType::boolean)};
  s.outputs[0].size[0] = 1, s.outputs[0].rank = 1;
  s.function = "all";
  compute(s, values, limit);
  bool truth = false;
  EXPECT_TRUE(values.load(&truth, s.outputs[0].address, 1));
  EXPECT_TRUE(truth);
}

TEST_F(Compute, TakesAnUnknownMaskAsAllChosen) {
  Semantics counts;
  counts.kind = Kind::nonzero_count;
  counts.inputs = {at(0, 3)};
  counts.outputs = {at(1, 2)};  // one partial count per block
  EXPECT_EQ(compute(counts, values, limit), Answer::whole_mask);
  EXPECT_EQ(get(counts.outputs[0]), (List{3, 0}));
  Semantics places;
  places.kind = Kind::nonzero_write;
  places.inputs = {at(0, 3)};
  places.outputs = {at(2, 3), at(3, 1)};
  compute(places, values, limit);
  EXPECT_EQ(get(places.outputs[0]), (List{0, 1, 2}));
  EXPECT_EQ(get(places.outputs[1]), (List{3}));
  counts.inputs = {put(0, {0, 4, 0})};
  EXPECT_EQ(compute(counts, values, limit), Answer::computed);
  EXPECT_EQ(get(counts.outputs[0]), (List{1, 0}));
}

TEST_F(Compute, DealsUnknownChoicesRoundRobin) {
  Semantics s;
  s.kind = Kind::topk;
  s.k = 2;
  auto scores = at(0, 4, DType::f32);
  scores.rank = 2, scores.size[1] = 4, scores.stride[1] = 16;
  auto chosen = at(2, 8);
  s.inputs = {scores};
  s.outputs = {at(1, 8, DType::f32), chosen};
  compute(s, values, limit);
  EXPECT_EQ(get(chosen), (List{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(Compute, KeepsTheOrderOfWhatUnknownKeysCarry) {
  Semantics s;
  s.kind = Kind::sort;
  auto carried = put(1, {5, 6, 7});
  s.inputs = {at(0, 3, DType::f32), carried};
  s.outputs = {at(0, 3, DType::f32), carried};
  compute(s, values, limit);
  EXPECT_EQ(get(carried), (List{5, 6, 7}));
}

}  // namespace
}  // namespace maya::values
