// golden.csv holds predictions as tools/fit made them (physics and LightGBM's own trees); the
// shipped files, read by this code, must give the same.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "maya/catalog.h"
#include "maya/estimate.h"
#include "op/text.h"

namespace maya::estimate {
namespace {

TEST(Golden, TheShippedModelsGiveWhatTheFitPredicted) {
  const std::string root = MAYA_SOURCE_DIR;
  auto catalog = catalog::Catalog::load(root + "/catalog");
  ASSERT_TRUE(catalog) << catalog.error().message;
  std::map<std::string, std::unique_ptr<Estimator>> estimators;
  std::ifstream in(root + "/src/estimate/golden.csv");
  std::string line;
  std::getline(in, line);
  ASSERT_EQ(line, "gpu,name,op,ns,step");
  int rows = 0, apart = 0;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::string gpu, name, text, ns, step;
    std::getline(cells, gpu, ','), std::getline(cells, name, ','), std::getline(cells, text, ',');
    std::getline(cells, ns, ','), std::getline(cells, step);
    // Each with the libraries it was measured with: tables of today's, or what came before.
    const Libraries libraries{step.starts_with("ops_") ? "" : "2.1.0"};
    auto& estimator = estimators[gpu + " " + libraries.torch];
    if (!estimator) {
      auto sheet = catalog->gpu(gpu);
      ASSERT_TRUE(sheet) << sheet.error().message;
      auto made = make_estimator(*sheet, root + "/catalog", "", libraries);
      ASSERT_TRUE(made) << made.error().message;
      estimator = std::move(*made);
    }
    Op op;
    op.name = name;
    auto work = parse_work(text);
    ASSERT_TRUE(work) << work.error().message;
    op.work = *work;
    const double expected = std::stod(ns), got = (*estimator)(op).ns;
    // The files keep five digits: a row on the very edge of a split may fall to its other side. The
    // shipped forests have thresholds rounded to the nearest 32-bit number, which does the same;
    // tools/fit/learn.py rounds down since.
    EXPECT_NEAR(got / expected, 1, 0.05) << gpu << ": " << text;
    apart += std::abs(got / expected - 1) > 0.002;
    EXPECT_EQ((*estimator)(op).origin, Origin::fitted) << gpu << ": " << text;
    ++rows;
  }
  EXPECT_GT(rows, 200);
  EXPECT_LE(apart, rows / 15);
}

}  // namespace
}  // namespace maya::estimate
