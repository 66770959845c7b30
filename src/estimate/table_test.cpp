#include "estimate/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "estimate/test_gpus.h"
#include "estimate/vocabulary.h"

namespace maya::estimate {
namespace {

const std::string kCatalog = std::string(MAYA_SOURCE_DIR) + "/catalog";

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

struct Fixture : testing::Test {
  catalog::Gpu gpu = test_gpus()[5];
  std::unique_ptr<Estimator> estimator = std::move(*make_estimator(gpu, kCatalog));
  FindDevice find = [this](std::string_view name) -> Result<Device> {
    if (name != "h100-sxm") return Error{"unknown GPU '" + std::string(name) + "'"};
    return Device{gpu, estimator.get()};
  };
  std::string csv(const std::string& text, CsvSummary* summary = nullptr) {
    std::istringstream in(text);
    std::ostringstream out;
    auto result = estimate_csv(in, out, "h100-sxm", find);
    EXPECT_TRUE(result) << result.error().message;
    if (summary) *summary = *result;
    return out.str();
  }
};

TEST_F(Fixture, EveryExampleOfTheHelpWorks) {
  for (const Word& word : vocabulary()) {
    auto op = parse_op(split(word.example));
    ASSERT_TRUE(op) << word.example << ": " << op.error().message;
    Answer a = answer(*op, gpu, *estimator);
    EXPECT_GT(a.estimate.ns, 0) << word.example;
    EXPECT_LE(a.peak_share, 1.3) << word.example;  // beyond 1: found in L2
    EXPECT_EQ(a.warning, "") << word.example;
  }
  EXPECT_NE(help().find("gemm"), std::string::npos);
}

TEST(ParseOp, ExchangesRowsAndColumnsForBlas) {
  auto op = parse_op({"gemm", "m=1", "N=2", "k=3", "dtype=bf16"});
  ASSERT_TRUE(op);
  const auto& g = std::get<Gemm>(op->work);
  EXPECT_EQ(g.n, 1);
  EXPECT_EQ(g.m, 2);
  EXPECT_EQ(g.compute, DType::bf16);
}

TEST(ParseOp, AnOpMayBeOneArgument) {
  auto op = parse_op({"gemm m=1 n=2", "k=3"});
  ASSERT_TRUE(op);
  EXPECT_EQ(std::get<Gemm>(op->work).k, 3);
  EXPECT_FALSE(parse_op({" "}));
}

TEST(ParseOp, ErrorsSayWhatToDo) {
  for (const char* bad : {"gemmm m=1", "gemm m=1 n=2", "gemm m=1 n=2 k=x", "gemm m=1 n=2 k=3 z=4",
                          "gemm m=1 m=1", "gemm m", "conv n=1 c=1 k=1 h=2 w=2 kernel_size=5",
                          "gemm m=-1 n=2 k=3", "softmax rows=3 cols=2 dtype=float99"}) {
    auto op = parse_op(split(bad));
    ASSERT_FALSE(op) << bad;
    EXPECT_GT(op.error().message.size(), 20u) << bad;
  }
}

TEST_F(Fixture, CsvPassesColumnsThroughAndAddsItsOwn) {
  CsvSummary summary;
  std::string out =
      csv("op,m,n,k,dtype,note\ngemm,4096,4096,4096,bf16,\"a,b\"\nsoftmax,,,,,\n", &summary);
  EXPECT_NE(out.find("note,predicted_us,low_us,high_us,origin,warning"), std::string::npos);
  EXPECT_NE(out.find("\"a,b\""), std::string::npos);
  EXPECT_NE(out.find("needs rows="), std::string::npos);
  EXPECT_EQ(summary.rows, 2);
  EXPECT_EQ(summary.failed, 1);
}

TEST_F(Fixture, CsvFlagsWrongUnits) {
  CsvSummary summary;
  // 190 µs written as 0.19 "µs", and as 190 "ms".
  csv("op,m,n,k,dtype,measured_us\ngemm,4096,4096,4096,bf16,0.19\n", &summary);
  EXPECT_EQ(summary.flagged, 1);
  EXPECT_EQ(summary.compared, 0);
  csv("op,m,n,k,dtype,measured_ms\ngemm,4096,4096,4096,bf16,190\n", &summary);
  EXPECT_EQ(summary.flagged, 1);
  csv("op,m,n,k,dtype,measured_us\ngemm,4096,4096,4096,bf16,190\n", &summary);
  EXPECT_EQ(summary.flagged, 0);
  EXPECT_EQ(summary.compared, 1);
}

TEST_F(Fixture, CsvWithoutOpsIsRefused) {
  std::istringstream in("m,n,k\n1,2,3\n"), empty("");
  std::ostringstream out;
  EXPECT_FALSE(estimate_csv(in, out, "h100-sxm", find));
  EXPECT_FALSE(estimate_csv(empty, out, "h100-sxm", find));
}

}  // namespace
}  // namespace maya::estimate
