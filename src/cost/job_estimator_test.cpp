#include "cost/job_estimator.h"

#include <gtest/gtest.h>

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
  c.extra["power.cool_products"] = 0.5;
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
  EXPECT_DOUBLE_EQ(within(op, 2.2e6, true, Origin::fitted), 2);
  // What the user measured stands.
  EXPECT_EQ(within(op, 2.2e6, false, Origin::measured), 1);
}

TEST(JobEstimator, OtherWorkTakesWhatItTakesAlone) {
  using estimate::Origin;
  EXPECT_EQ(within(product(DType::f32), 4e7, true, Origin::fitted), 1);
  EXPECT_EQ(within({Pointwise{}, "", {}}, 1e6, true, Origin::fitted), 1);
}

}  // namespace
}  // namespace maya::cost
