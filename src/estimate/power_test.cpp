#include "estimate/power.h"

#include <gtest/gtest.h>

#include "estimate/gemm_model.h"
#include "estimate/test_gpus.h"

namespace maya::estimate {
namespace {

Chip board(double watts, double sustained_mhz = 0) {
  catalog::Gpu gpu = sheet("a100", "ampere", 8, 0, 108, 1410, 2039, 40, 19.5, 312, 156);
  gpu.tdp_watts = watts, gpu.sustained_clock_mhz = sustained_mhz;
  Chip chip = make_chip(gpu);
  PowerParams power;
  power.tensor_pj = 1.17, power.plain_pj = 7;
  limit_power(chip, power);
  return chip;
}

double product(const Chip& chip, double size, DType type, double columns = 0) {
  GemmShape s;
  s.m = s.n = s.k = size;
  if (columns > 0) s.n = columns;
  s.compute = type;
  s.bytes_a = s.bytes_b = s.bytes_d = bytes(type);
  return gemm_time(chip, s, {}).ns;
}

TEST(Power, FewerWattsSlowLongProductsOnly) {
  const Chip full = board(400), little = board(200);
  EXPECT_GT(product(little, 8192, DType::f16), 1.2 * product(full, 8192, DType::f16));
  // Less than in proportion: a lower clock is the more efficient one.
  EXPECT_LT(product(little, 8192, DType::f16), 2 * product(full, 8192, DType::f16));
  // Plain arithmetic draws less at its peak, and keeps it.
  EXPECT_DOUBLE_EQ(product(little, 4096, DType::f32), product(full, 4096, DType::f32));
  // What waits for memory does not wait longer.
  EXPECT_NEAR(product(little, 8192, DType::f16, 16) / product(full, 8192, DType::f16, 16), 1, 0.05);
}

TEST(Power, NothingIsGainedByMoreThanEnough) {
  EXPECT_DOUBLE_EQ(product(board(900), 8192, DType::f16), product(board(1800), 8192, DType::f16));
}

TEST(Power, AStatedClockIsBelieved) {
  const Chip stated = board(100, 1200);
  EXPECT_EQ(sustained_share(stated, DType::f16, 1e9), 1);
  EXPECT_LT(stated.sustained, 1);
}

TEST(Power, TypesReachTheSameShareOfTheirPeak) {
  const Chip chip = board(250);
  const double f16 = sustained_share(chip, DType::f16, chip.rate(DType::f16));
  EXPECT_LT(f16, 1);
  EXPECT_DOUBLE_EQ(sustained_share(chip, DType::tf32, chip.rate(DType::tf32)), f16);
}

TEST(Power, EightBitsCostMoreThanHalfOfSixteen) {
  Chip chip = board(250);
  chip.narrow = 0.8;
  EXPECT_LT(sustained_share(chip, DType::i8, chip.rate(DType::i8)),
            sustained_share(chip, DType::f16, chip.rate(DType::f16)));
}

TEST(Power, WithoutWattsThereIsNoLimit) {
  EXPECT_EQ(sustained_share(board(0), DType::f16, 1e9), 1);
}

}  // namespace
}  // namespace maya::estimate
