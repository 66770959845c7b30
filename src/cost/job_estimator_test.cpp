#include "cost/job_estimator.h"

#include <gtest/gtest.h>

#include <cmath>

namespace maya::cost {
namespace {

class Fixed final : public estimate::Estimator {
 public:
  explicit Fixed(estimate::Estimate answer) : answer_(answer) {}
  estimate::Estimate operator()(const Op&) const override { return answer_; }

 private:
  estimate::Estimate answer_;
};

catalog::Cluster cluster() {
  catalog::Cluster c;
  c.gpu.peak_tflops[DType::bf16] = 1000;
  c.gpu.peak_tflops[DType::f32] = 60;
  c.extra["power.products"] = 0.8;
  c.gpu.tdp_watts = 700;
  c.extra["power.job_pj"] = 1;  // 700 TFLOP/s
  return c;
}

Op product(DType type) {
  Gemm g;
  g.m = g.n = g.k = 10000;  // 2 TFLOP
  g.a = g.b = g.d = g.compute = type;
  return {g, "", {}};
}

double within(const Op& op, double ns, bool cool, estimate::Origin origin) {
  const Fixed alone({ns, 0.9 * ns, 1.1 * ns, origin, cool});
  const JobEstimator in_job(alone, cluster());
  const estimate::Estimate e = in_job(op);
  EXPECT_NEAR(e.low_ns / e.ns, 0.9, 1e-9);
  EXPECT_NEAR(e.high_ns / e.ns, 1.1, 1e-9);
  return e.ns / ns;
}

TEST(JobEstimator, ProductsNearTheirPeakTakeLongerWithinAJob) {
  using estimate::Origin;
  const Op op = product(DType::bf16);
  EXPECT_DOUBLE_EQ(within(op, 2.2e6, false, Origin::fitted), 1.25);  // 909 TFLOP/s
  // 100 TFLOP/s: bound by memory.
  EXPECT_NEAR(within(op, 2e7, false, Origin::fitted), 1 + 0.25 * 0.1 / 0.75, 1e-9);
  // Cool estimates are held to what the board sustains: 909 of 700 TFLOP/s, and 500.
  EXPECT_NEAR(within(op, 2.2e6, true, Origin::fitted), 2e9 / 2.2e6 / 700, 1e-9);
  EXPECT_EQ(within(op, 4e6, true, Origin::fitted), 1);
  // What the user measured stands.
  EXPECT_EQ(within(op, 2.2e6, false, Origin::measured), 1);
}

TEST(JobEstimator, ContextsComeFromMemory) {
  catalog::Cluster c = cluster();
  c.gpu.memory_gbps = 1000;
  Attention w;
  w.batch = 16, w.heads = 32, w.kv_heads = 8, w.seq_q = 1, w.seq_k = 1240;
  w.head_dim = w.head_dim_v = 128, w.dtype = DType::bf16;
  const double keys_ns = 16 * 1240 * 8 * 128 * 2 * 2 / 1000.0;  // 81 us
  auto in_job = [&](double ns, estimate::Origin origin) {
    const Fixed alone({ns, ns, ns, origin, true});
    return JobEstimator(alone, c)({w, "", {}}).ns;
  };
  EXPECT_NEAR(in_job(40e3, estimate::Origin::fitted), keys_ns, 0.01 * keys_ns);
  EXPECT_EQ(in_job(100e3, estimate::Origin::fitted), 100e3);
  EXPECT_EQ(in_job(40e3, estimate::Origin::measured), 40e3);
  w.seq_q = 1240, c.gpu.memory_gbps = 1;  // a prompt: its keys were just computed
  EXPECT_EQ(in_job(1e6, estimate::Origin::fitted), 1e6);
}

TEST(JobEstimator, TheGapBetweenKernelsIsNotPartOfThem) {
  catalog::Cluster c = cluster();
  c.host.graph_node_us = 0.9;
  auto in_job = [&](double ns, bool cool, estimate::Origin origin) {
    const Fixed alone({ns, ns, ns, origin, cool});
    return JobEstimator(alone, c)(product(DType::f32)).ns;
  };
  EXPECT_NEAR(in_job(20e3, true, estimate::Origin::fitted), 19.1e3, 1e-6);
  EXPECT_NEAR(in_job(1e3, true, estimate::Origin::fitted), 500, 1e-6);  // some time it takes
  EXPECT_EQ(in_job(20e3, false, estimate::Origin::fitted), 20e3);
  EXPECT_EQ(in_job(20e3, true, estimate::Origin::measured), 20e3);
}

TEST(JobEstimator, NarrowerTypesAreHeldToTheSameShareOfTheirPeak) {
  catalog::Cluster c = cluster();
  c.gpu.peak_tflops[DType::f8e4m3] = 2000;
  const Fixed alone({1.1e6, 1e6, 1.2e6, estimate::Origin::fitted, true});  // 1818 TFLOP/s
  EXPECT_NEAR(JobEstimator(alone, c)(product(DType::f8e4m3)).ns / 1.1e6, 2e9 / 1.1e6 / 1400, 1e-9);
  c.extra["power.job_yield"] = 0.5;
  EXPECT_NEAR(JobEstimator(alone, c)(product(DType::f8e4m3)).ns / 1.1e6,
              std::sqrt(2e9 / 1.1e6 / 1400), 1e-9);
  c.gpu.tdp_watts = 0;  // not on the sheet: no limit
  EXPECT_EQ(JobEstimator(alone, c)(product(DType::f8e4m3)).ns, 1.1e6);
}

TEST(JobEstimator, RecordingsForOlderGpusAreHeldToTheLimitOfThisOne) {
  // bf16 operands on a GPU without units for them: recorded as f32.
  Op op = product(DType::bf16);
  std::get<Gemm>(op.work).compute = DType::f32;
  EXPECT_NEAR(within(op, 2.2e6, true, estimate::Origin::fitted), 2e9 / 2.2e6 / 700, 1e-9);
}

TEST(JobEstimator, OtherWorkTakesWhatItTakesAlone) {
  using estimate::Origin;
  EXPECT_EQ(within(product(DType::f32), 4e7, true, Origin::fitted), 1);
  EXPECT_EQ(within({Pointwise{}, "", {}}, 1e6, true, Origin::fitted), 1);
}

}  // namespace
}  // namespace maya::cost
