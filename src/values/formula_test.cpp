#include "values/formula.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>

#include "values/compute.h"

namespace maya::values {
namespace {

using Kind = Semantics::Kind;
constexpr std::uint64_t limit = 1 << 20;

// places x places, as a mask of attention is made: comparisons of one index vector, broadcast.
class Mask : public ::testing::TestWithParam<std::int64_t> {
 protected:
  static constexpr std::uint64_t span = std::uint64_t{1} << 34, room = std::uint64_t{1} << 31;
  void* map = mmap(nullptr, span, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  std::uint64_t base = reinterpret_cast<std::uint64_t>(map);
  KnownBytes values{base, span};
  ~Mask() override { munmap(map, span); }

  Semantics::Operand matrix(int slot, DType type) const {
    Semantics::Operand o;
    o.dtype = type;
    o.address = base + static_cast<std::uint64_t>(slot) * room;
    o.rank = 2;
    o.size[0] = o.size[1] = GetParam();
    o.stride[0] = bits(type) / 8;
    o.stride[1] = o.stride[0] * GetParam();
    return o;
  }
  // The index vector along rows or columns of the iteration.
  Semantics::Operand index(bool row) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(GetParam()));
    std::iota(all.begin(), all.end(), 0);
    auto o = matrix(0, DType::i64);
    values.store(o.address, all.data(), all.size() * 8);
    o.stride[0] = row ? 0 : 8, o.stride[1] = row ? 8 : 0;
    return o;
  }
  Semantics::Operand pointwise(Kind kind, const char* f, Semantics::Operand out,
                               std::vector<Semantics::Operand> in, double scalar = 0) {
    Semantics s;
    s.kind = kind, s.function = f, s.scalar = scalar;
    s.outputs = {out}, s.inputs = std::move(in);
    compute(s, values, limit);
    return out;
  }
  // Sums of blocks of 128 x 128.
  std::vector<std::int64_t> sums(const Semantics::Operand& mask) {
    const std::int64_t n = GetParam() / 128, pitch = GetParam();
    Semantics s;
    s.kind = Kind::reduce, s.function = "sum";
    Semantics::Operand in = mask, out;
    in.rank = out.rank = 4;
    for (int d = 0; d < 4; ++d) in.size[d] = d < 2 ? 128 : n, out.size[d] = d < 2 ? 1 : n;
    in.stride[0] = 1, in.stride[1] = pitch, in.stride[2] = 128, in.stride[3] = 128 * pitch;
    out.dtype = DType::i64, out.address = base + 7 * room;
    out.stride[2] = 8, out.stride[3] = 8 * n;
    s.inputs = {in}, s.outputs = {out};
    compute(s, values, limit);
    std::vector<std::int64_t> result(static_cast<std::size_t>(n * n));
    EXPECT_TRUE(values.load(result.data(), out.address, result.size() * 8));
    return result;
  }
};

TEST_P(Mask, CausalBlocksAreNoneSomeOrAll) {
  auto mask =
      pointwise(Kind::compare, "ge", matrix(1, DType::boolean), {index(true), index(false)});
  auto blocks = sums(mask);
  const std::int64_t n = GetParam() / 128;
  for (std::int64_t q = 0; q < n; ++q)
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t sum = blocks[static_cast<std::size_t>(q * n + k)];
      if (q == k)
        EXPECT_TRUE(sum > 0 && sum < 128 * 128) << q;
      else
        EXPECT_EQ(sum, q > k ? 128 * 128 : 0) << q << " " << k;
    }
}

TEST_P(Mask, WindowsAreFollowedThroughDifferences) {
  auto causal =
      pointwise(Kind::compare, "ge", matrix(1, DType::boolean), {index(true), index(false)});
  auto distance =
      pointwise(Kind::binary, "sub", matrix(2, DType::i64), {index(true), index(false)});
  auto near = pointwise(Kind::compare, "le", matrix(3, DType::boolean), {distance}, 256);
  auto mask = pointwise(Kind::binary, "and", matrix(4, DType::boolean), {causal, near});
  auto blocks = sums(mask);
  const std::int64_t n = GetParam() / 128;
  for (std::int64_t q = 3; q < n; ++q) {
    auto row = blocks.begin() + q * n;
    EXPECT_EQ(std::count_if(row, row + n, [](auto v) { return v > 0; }), 3) << q;
    EXPECT_EQ(row[q - 1], 128 * 128);
  }
}

TEST_P(Mask, CopiesAreFormulasToo) {
  auto mask =
      pointwise(Kind::compare, "ge", matrix(1, DType::boolean), {index(true), index(false)});
  auto copy = matrix(2, DType::boolean);
  values.copy(copy.address, mask.address, static_cast<std::uint64_t>(count(copy)));
  auto blocks = sums(copy);
  EXPECT_EQ(blocks[0] > 0 && blocks[0] < 128 * 128, true);
  EXPECT_EQ(blocks[1], 0);
  EXPECT_EQ(blocks[static_cast<std::size_t>(GetParam() / 128)], 128 * 128);
}

TEST_P(Mask, RowsAreCountedExactly) {
  if (GetParam() > 2000) GTEST_SKIP() << "seconds";
  auto mask =
      pointwise(Kind::compare, "ge", matrix(1, DType::boolean), {index(true), index(false)});
  Semantics s;
  s.kind = Kind::reduce, s.function = "sum";
  Semantics::Operand out = matrix(7, DType::i64);
  out.size[0] = 1, out.stride[0] = 0, out.stride[1] = 8;
  s.inputs = {mask}, s.outputs = {out};
  compute(s, values, limit);
  std::vector<std::int64_t> rows(8);
  EXPECT_TRUE(values.load(rows.data(), out.address, 64));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(Mask, WhatIsOverwrittenIsForgotten) {
  auto mask =
      pointwise(Kind::compare, "ge", matrix(1, DType::boolean), {index(true), index(false)});
  values.forget(mask.address + 4096, 1);
  EXPECT_FALSE(values.any(mask.address, 1));
}

INSTANTIATE_TEST_SUITE_P(Places, Mask, ::testing::Values(1536, 8192));

}  // namespace
}  // namespace maya::values
