// The files of learned models, and what must hold of their answers on every GPU of the catalogue.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "estimate/learned_model.h"
#include "estimate/models.h"
#include "maya/catalog.h"
#include "maya/estimate.h"
#include "op/text.h"

namespace maya::estimate {
namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint8_t>(text.size()));
  out += text;
}

// One model of one tree: where feature 0 is at most 3, half the analytic time, else twice.
std::string small_file() {
  std::string out = "MAYAFST1";
  put(out, std::uint32_t{1});
  put_text(out, "gemm.16");
  put(out, std::uint8_t{1}), put_text(out, "vllm");
  put(out, std::uint8_t{0});  // kernels
  put(out, std::uint8_t{2});  // features
  put(out, std::uint8_t{1});  // steps of the interval
  put(out, 1e30F), put(out, 0.9F), put(out, 1.2F);
  put(out, std::uint8_t{1}), put(out, 3.0F);          // thresholds of feature 0
  put(out, std::uint8_t{0});                          // of feature 1
  put(out, static_cast<float>(std::log(2.0) / 100));  // of a leaf
  put(out, std::uint16_t{1}), put(out, std::uint16_t{1});
  put(out, std::uint8_t{0}), put(out, std::uint8_t{0});
  put(out, std::uint8_t{255}), put(out, std::int16_t{-100});
  put(out, std::uint8_t{255}), put(out, std::int16_t{100});
  return out;
}

Question question(float feature, double limit) {
  Question q;
  q.family = Learned::gemm_16;
  q.base_ns = 1000, q.limit_ns = limit;
  q.add(static_cast<double>(feature));
  return q;
}

TEST(LearnedFile, IsReadAndAnswers) {
  const auto models = LearnedModels::parse(small_file(), "test");
  ASSERT_TRUE(models) << models.error().message;
  const LearnedModel* model = models->find(Learned::gemm_16);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(models->find(Learned::gemm_8), nullptr);
  auto fast = question(2, 0), slow = question(4, 0), bounded = question(2, 800);
  EXPECT_TRUE(model->made_for(fast));
  auto longer = fast;
  longer.add(1);  // a question of today to a file of yesterday
  EXPECT_TRUE(model->made_for(longer));
  EXPECT_EQ(model->answer(longer, "").ns, model->answer(fast, "").ns);
  EXPECT_FALSE(model->made_for(Question{}));
  EXPECT_NEAR(model->answer(fast, "").ns, 500, 1);
  EXPECT_NEAR(model->answer(slow, "vllm").ns, 2000, 2);
  EXPECT_NEAR(model->answer(slow, "vllm").high_ns, 2400, 3);
  // Nothing is faster than the peak, whatever was learned.
  EXPECT_EQ(model->answer(bounded, "").ns, 800);
  EXPECT_EQ(model->answer(bounded, "").low_ns, 800);
}

TEST(LearnedFile, EveryCutIsRefused) {
  const std::string whole = small_file();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(LearnedModels::parse(whole.substr(0, size), "test")) << size;
  EXPECT_FALSE(LearnedModels::parse(whole + "x", "test"));
}

TEST(LearnedFile, EveryChangedByteIsRefusedOrAnswersFinitely) {
  const std::string whole = small_file();
  for (std::size_t i = 8; i < whole.size(); ++i)
    for (int value : {0, 1, 127, 255}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      const auto models = LearnedModels::parse(changed, "test");
      if (!models) continue;
      auto q = question(2, 1);
      if (const auto* model = models->find(Learned::gemm_16))
        EXPECT_FALSE(std::isnan(model->answer(q, "").ns)) << i;
    }
}

// Estimators of the GPUs whose kernels were measured, and of two neighbours and a stranger.
class Measured : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string root = MAYA_SOURCE_DIR;
    auto catalog = catalog::Catalog::load(root + "/catalog");
    ASSERT_TRUE(catalog) << catalog.error().message;
    auto gpu = catalog->gpu(GetParam());
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = *gpu;
    auto made = make_estimator(gpu_, root + "/catalog");
    ASSERT_TRUE(made) << made.error().message;
    estimator_ = std::move(*made);
  }
  Estimate of(const std::string& text) const {
    Op op;
    op.name = "any::";
    auto work = parse_work(text);
    EXPECT_TRUE(work) << text;
    op.work = *work;
    return (*estimator_)(op);
  }
  static std::string gemm(double m, double n, double k) {
    auto i = [](double v) { return std::to_string(static_cast<std::int64_t>(v)); };
    return "gemm m=" + i(n) + " n=" + i(m) + " k=" + i(k) +
           " a=bf16 b=bf16 d=bf16 compute=bf16 transpose_a=1";
  }
  static std::string attention(double batch, double seq, double heads, double head) {
    auto i = [](double v) { return std::to_string(static_cast<std::int64_t>(v)); };
    return "attention batch=" + i(batch) + " heads=" + i(heads) + " kv_heads=" + i(heads) +
           " seq_q=" + i(seq) + " seq_k=" + i(seq) + " head_dim=" + i(head) +
           " head_dim_v=" + i(head) + " dtype=bf16 causal=1";
  }
  catalog::Gpu gpu_;
  std::unique_ptr<Estimator> estimator_;
};

// What is twice as large is not faster by more than neighbouring sizes differ in the measurements:
// a quarter, and more in kernels of a few microseconds.
double noise(double ns) { return ns < 8000 ? 0.55 : 0.75; }

TEST_P(Measured, ProductsGrowWithEverySize) {
  for (double m : {1.0, 16.0, 128.0, 1024.0, 8192.0, 65536.0})
    for (double n : {64.0, 1024.0, 8192.0, 65536.0})
      for (double k : {64.0, 1024.0, 8192.0, 65536.0}) {
        const Estimate e = of(gemm(m, n, k));
        EXPECT_GE(of(gemm(2 * m, n, k)).ns, noise(e.ns) * e.ns) << gemm(m, n, k);
        EXPECT_GE(of(gemm(m, 2 * n, k)).ns, noise(e.ns) * e.ns) << gemm(m, n, k);
        EXPECT_GE(of(gemm(m, n, 2 * k)).ns, noise(e.ns) * e.ns) << gemm(m, n, k);
        EXPECT_LE(e.low_ns, e.ns);
        EXPECT_GE(e.high_ns, e.ns);
      }
}

TEST_P(Measured, NothingIsFasterThanTheSheet) {
  const double peak = gpu_.peak_tflops.at(DType::bf16) * 1e3;
  for (double m : {1.0, 300.0, 8192.0, 1048576.0})
    for (double n : {64.0, 3000.0, 131072.0})
      for (double k : {32.0, 5000.0, 262144.0})
        EXPECT_GE(of(gemm(m, n, k)).ns, 0.999 * 2 * m * n * k / peak) << gemm(m, n, k);
}

TEST_P(Measured, OutsideTheTablesThereIsNoCliff) {
  // Sizes far above any that was measured: time per FLOP stays what it was at the edge. On GB200
  // the measurements themselves have a step there: m of 8192 and more ran at 1.0 PFLOP/s, unless k
  // was 51200 or more.
  const double step = GetParam() == "gb200" ? 0.2 : 0;
  const double edge = of(gemm(32768, 16384, 16384)).ns;
  for (double times : {2.0, 8.0, 32.0}) {
    EXPECT_NEAR(of(gemm(32768 * times, 16384, 16384)).ns / edge / times, 1, 0.2 + step) << times;
    EXPECT_NEAR(of(gemm(32768, 16384, 16384 * times)).ns / edge / times, 1, 0.25 + step) << times;
  }
}

TEST_P(Measured, AttentionGrowsWithEverySize) {
  for (double batch : {1.0, 8.0, 64.0})
    for (double seq : {64.0, 1024.0, 16384.0})
      for (double heads : {1.0, 12.0, 64.0}) {
        const double ns = of(attention(batch, seq, heads, 128)).ns;
        EXPECT_GE(of(attention(2 * batch, seq, heads, 128)).ns, noise(ns) * ns);
        EXPECT_GE(of(attention(batch, 2 * seq, heads, 128)).ns, noise(ns) * ns);
        EXPECT_GE(of(attention(batch, seq, 2 * heads, 128)).ns, noise(ns) * ns);
        // Head sizes nobody measured lie between their neighbours.
        EXPECT_LE(of(attention(batch, seq, heads, 96)).ns, 1.25 * ns);
        EXPECT_GE(of(attention(batch, seq, heads, 160)).ns, noise(ns) * ns);
      }
}

TEST_P(Measured, ExpertsGrowWithTokensAndReadOnlyWhatIsHit) {
  auto layer = [&](std::int64_t tokens, std::string_view more) {
    Op op;
    op.work = *parse_work("gemm m=" + std::to_string(tokens * 8) +
                          " n=4608 k=4096 groups=128 a=bf16 b=bf16 d=bf16 compute=bf16");
    op.name = "any::moe tokens=" + std::to_string(tokens) + " experts=128 top=8 matrices=3 skew=0" +
              std::string(more);
    return (*estimator_)(op);
  };
  const double weights = 128.0 * 4608 * 4096 * 2;
  for (std::int64_t tokens : {1, 4, 16, 128, 2048, 16384}) {
    const Estimate e = layer(tokens, "");
    EXPECT_GE(layer(2 * tokens, "").ns, noise(e.ns) * e.ns) << tokens;
    EXPECT_LE(e.low_ns, e.ns);
    EXPECT_GE(e.high_ns, e.ns);
    // Whoever names a kernel gets an answer of the same kind.
    for (std::string_view kernel : {" kernel=triton", " kernel=cutlass", " kernel=nobodys"})
      EXPECT_GT(layer(tokens, kernel).ns, 0) << kernel;
  }
  // A token of eight experts does not read a hundred and twenty-eight.
  EXPECT_LT(layer(1, "").ns, 0.5 * weights / gpu_.memory_gbps);
}

// The two products of a layer, as an engine launches them, with the kernels between them are about
// the layer that the tables have; and one reads what it must.
TEST_P(Measured, LaunchedProductsOfExpertsAddUpToTheirLayer) {
  for (std::int64_t tokens : {1, 4, 16, 128, 2048}) {
    const double all = 128 * (1 - std::pow(1 - 8 / 128., static_cast<double>(tokens)));
    const std::int64_t hit = std::min(std::llround(all), static_cast<long long>(128));
    auto product = [&](std::string_view sizes) {
      Op op;
      op.name = "fused_moe_kernel";
      op.work = *parse_work("gemm m=" + std::to_string(tokens * 8) + " " + std::string(sizes) +
                            " groups=" + std::to_string(hit) +
                            " experts=128 top=8 a=bf16 b=bf16 d=bf16 compute=bf16");
      return (*estimator_)(op).ns;
    };
    Op layer;
    layer.work = *parse_work("gemm m=" + std::to_string(tokens * 8) +
                             " n=4608 k=4096 groups=128 a=bf16 b=bf16 d=bf16 compute=bf16");
    layer.name = "any::moe tokens=" + std::to_string(tokens) +
                 " experts=128 top=8 matrices=3 skew=-1 kernel=fused_moe_kernel";
    const double first = product("n=3072 k=4096 part=first");
    const double second = product("n=4096 k=1536 part=second");
    const double whole = (*estimator_)(layer).ns;
    EXPECT_LT(first + second, 1.02 * whole) << tokens;
    EXPECT_GT(first + second, 0.5 * whole) << tokens;
    EXPECT_NEAR(first / second, 2, 0.2) << tokens;
    const double weights = static_cast<double>(hit) * 3072 * 4096 * 2;
    EXPECT_GE(first, 0.999 * weights / gpu_.memory_gbps) << tokens;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Measured,
                         testing::Values("a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm",
                                         "b300-sxm", "gb200", "gb300", "l40s",
                                         "rtx-pro-6000-server", "h100-pcie", "rtx5090"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace maya::estimate
