#include "estimate/calibration.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "estimate/test_gpus.h"
#include "maya/estimate.h"
#include "op/text.h"

namespace maya::estimate {
namespace {

const std::string kCatalog = std::string(MAYA_SOURCE_DIR) + "/catalog";
constexpr const char* kGemm = "gemm m=768 n=16384 k=3072 a=bf16 b=bf16 d=bf16 compute=bf16";

Op op_of(std::string_view text) {
  Op op;
  op.work = *parse_work(text);
  return op;
}

TEST(Calibration, ExactTimesAndScalesReachTheEstimate) {
  const auto gpu = test_gpus()[5];
  const std::string path = testing::TempDir() + "/maya.calibration";
  std::ofstream(path) << "maya-calibration 1\ngpu h100-sxm\nop 103775 99712 108200 704 " << kGemm
                      << "\nscale memory.pointwise 1.5 0.9 1.1 40\n";
  auto plain = std::move(*make_estimator(gpu, kCatalog));
  auto made = make_estimator(gpu, kCatalog, path);
  ASSERT_TRUE(made) << made.error().message;
  auto& calibrated = **made;

  Estimate e = calibrated(op_of(kGemm));
  EXPECT_EQ(e.origin, Origin::measured);
  EXPECT_EQ(e.ns, 103775);
  EXPECT_EQ(e.high_ns, 108200);
  // Leading dimensions and transposition do not hide the measurement; another size is not it.
  EXPECT_EQ(calibrated(op_of(std::string(kGemm) + " transpose_a=1 lda=3072")).ns, 103775);
  EXPECT_NE(calibrated(op_of("gemm m=769 n=16384 k=3072 a=bf16 b=bf16 d=bf16 compute=bf16")).origin,
            Origin::measured);

  Op add = op_of("pointwise elements=16777216 bytes_read=67108864 bytes_written=67108864");
  EXPECT_NEAR(calibrated(add).ns / (*plain)(add).ns, 1.5, 1e-9);
  EXPECT_NEAR(calibrated(add).low_ns / calibrated(add).ns, 0.9, 1e-9);
  std::remove(path.c_str());
}

TEST(Calibration, DamagedFilesAreRefusedWithTheLine) {
  for (const char* text :
       {"", "maya-calibration 9\n", "maya-calibration 1\nop 5 6 7 1 gemm m=1\n",
        "maya-calibration 1\nop 5 4 7 1 nonsense m=1\n", "maya-calibration 1\nop fast\n",
        "maya-calibration 1\nscale gemm.tensor 1000 1 1 1\n", "maya-calibration 1\nhello\n",
        "{\"traceEvents\": []}\n"}) {
    auto parsed = Calibration::parse(text, "file");
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("maya calibrate"), std::string::npos);
  }
  EXPECT_FALSE(Calibration::load("/nonexistent/file"));
}

}  // namespace
}  // namespace maya::estimate
