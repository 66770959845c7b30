#include "maya/estimate.h"

#include <gtest/gtest.h>

#include <time.h>
#include <cmath>

#include "estimate/models.h"
#include "estimate/test_gpus.h"
#include "op/text.h"

namespace maya::estimate {
namespace {

const std::string kCatalog = std::string(MAYA_SOURCE_DIR) + "/catalog";

Op op_of(std::string_view text) {
  auto work = parse_work(text);
  EXPECT_TRUE(work) << work.error().message;
  Op op;
  op.work = *work;
  return op;
}

std::unique_ptr<Estimator> estimator(const catalog::Gpu& gpu) {
  auto made = make_estimator(gpu, kCatalog);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

// One op of every kind, large enough to be above the floor.
const char* const kOps[] = {
    "gemm m=4096 n=4096 k=4096 a=f16 b=f16 d=f16 compute=f16",
    "gemm m=4096 n=4096 k=4096",
    "gemm m=4096 n=4096 k=4096 a=f32 b=f32 d=f32 compute=tf32",
    "gemm m=128 n=128 k=64 batch=512 a=f16 b=f16 d=f16 compute=f16",
    "convolution n=32 c=64 h=56 w=56 k=64 kh=3 kw=3 pad_h=1 pad_w=1 dtype=f16 compute=f16",
    "convolution n=32 c=64 h=56 w=56 k=64 kh=3 kw=3 pad_h=1 pad_w=1",
    "convolution n=32 c=64 h=56 w=56 k=64 kh=3 kw=3 pad_h=1 pad_w=1 groups=64 dtype=f16 "
    "compute=f16",
    "attention batch=4 heads=32 kv_heads=32 seq_q=2048 seq_k=2048 head_dim=128 dtype=f16",
    "normalization kind=layer rows=8192 cols=4096 dtype=f16",
    "normalization kind=batch rows=64 cols=401408 dtype=f16",
    "softmax rows=8192 cols=4096",
    "cross_entropy rows=8192 cols=32000 fused=1",
    "pointwise elements=16777216 bytes_read=67108864 bytes_written=67108864",
    "reduction inputs=16777216 outputs=4096",
    "gather rows=8192 cols=4096 table_rows=32000",
    "scatter rows=8192 cols=4096 table_rows=32000 atomic=1",
    "sort elements=1048576",
    "scan elements=16777216 bytes_read=67108864 bytes_written=67108864",
    "random elements=16777216 dropout=1",
    "pool inputs=25690112 outputs=6422528 window=9",
    "optimizer_step elements=16777216 fused=1",
    "copy bytes=67108864",
    "copy bytes=67108864 direction=host_to_device pinned=1",
    "fill bytes=67108864",
    "rnn seq=64 batch=64 input=512 hidden=512",
    "fft n=4096 batch=1024",
    "solver m=1024 n=1024",
    "sparse rows=65536 cols=65536 nonzeros=1000000 n=64",
    "triton_kernel bytes_read=67108864 bytes_written=67108864 exact=1",
    "other_kernel bytes_touched=67108864",
};

TEST(Estimate, EveryKindOnEveryGpuIsFinitePositiveAndOrdered) {
  for (const auto& gpu : test_gpus()) {
    auto estimate = estimator(gpu);
    for (const char* text : kOps) {
      Estimate e = (*estimate)(op_of(text));
      EXPECT_TRUE(std::isfinite(e.ns) && e.ns > 500 && e.ns < 1e9)
          << gpu.name << ": " << text << " " << e.ns;
      EXPECT_LE(e.low_ns, e.ns) << text;
      EXPECT_GE(e.high_ns, e.ns) << text;
    }
  }
}

TEST(Estimate, NoRateAboveTheDataSheet) {
  for (const auto& gpu : test_gpus()) {
    auto estimate = estimator(gpu);
    Chip chip = make_chip(gpu);
    for (const char* text : kOps) {
      Op op = op_of(text);
      const bool winograd = std::holds_alternative<Convolution>(op.work);
      double ns = (*estimate)(op).ns;
      EXPECT_LE(flops(op.work) / ns, (winograd ? 4.0 : 1.0) * chip.rate(compute_type(op.work)))
          << gpu.name << ": " << text;
      EXPECT_LE((bytes_moved(op.work) - chip.l2_bytes) / ns, chip.dram) << gpu.name << ": " << text;
    }
  }
}

TEST(Estimate, GrowsWithTheWork) {
  for (const auto& gpu : test_gpus()) {
    auto estimate = estimator(gpu);
    for (const char* pattern :
         {"gemm n=4096 k=4096 a=f16 b=f16 d=f16 compute=f16 m=", "softmax cols=1024 rows=",
          "pointwise bytes_read=0 elements=", "copy bytes=", "normalization cols=4096 rows=",
          "attention batch=1 heads=16 kv_heads=16 seq_q=1024 head_dim=64 seq_k="}) {
      double before = 0;
      for (std::int64_t size = 64; size <= 65536; size *= 4) {
        double ns = (*estimate)(op_of(pattern + std::to_string(size))).ns;
        EXPECT_GE(ns, 0.999 * before) << gpu.name << ": " << pattern << size;
        before = ns;
      }
    }
  }
}

// A prompt and 127 tokens in one launch. FlashAttention 2 gives each of their heads a tile of its
// own; other kernels read their keys once.
TEST(Estimate, TokensBesideAPromptCostWhatTheirKernelMakesOfThem) {
  const std::string prompt =
      "attention batch=1 heads=32 kv_heads=8 seq_q=1900 seq_k=1900 head_dim=128 head_dim_v=128 "
      "dtype=bf16 causal=1 kernel=";
  const std::string tokens = " short_batch=127 short_q=1 short_k=1000";
  const std::string alone =
      "attention batch=127 heads=32 kv_heads=8 seq_q=1 seq_k=1000 head_dim=128 head_dim_v=128 "
      "dtype=bf16 causal=1 kernel=";
  for (const auto& gpu : test_gpus()) {
    auto estimate = estimator(gpu);
    for (const std::string kernel : {"flash2", "flash3"}) {
      const double before = (*estimate)(op_of(prompt + kernel)).ns;
      const double more = (*estimate)(op_of(prompt + kernel + tokens)).ns - before;
      const double apart = (*estimate)(op_of(alone + kernel)).ns;
      EXPECT_GT(more, 0.5 * apart) << gpu.name << ", " << kernel;
      EXPECT_LT(more, (kernel == "flash2" ? 12 : 1.01) * apart) << gpu.name << ", " << kernel;
    }
  }
}

TEST(Estimate, LargeWorkScalesWithItsSize) {
  auto gpus = test_gpus();
  for (const auto& gpu : gpus) {
    auto estimate = estimator(gpu);
    double one = (*estimate)(op_of("pointwise elements=268435456 inputs=2")).ns;
    double four = (*estimate)(op_of("pointwise elements=1073741824 inputs=2")).ns;
    EXPECT_NEAR(four / one, 4, 0.1) << gpu.name;
    one = (*estimate)(op_of("gemm m=8192 n=8192 k=8192 a=f16 b=f16 d=f16 compute=f16")).ns;
    four = (*estimate)(op_of("gemm m=8192 n=8192 k=32768 a=f16 b=f16 d=f16 compute=f16")).ns;
    EXPECT_NEAR(four / one, 4, 0.35) << gpu.name;
  }
}

TEST(Estimate, AnswersAreInNanoseconds) {
  auto estimate = estimator(test_gpus()[5]);  // H100 SXM
  double ns = (*estimate)(op_of("gemm m=8192 n=8192 k=8192 a=bf16 b=bf16 d=bf16 compute=bf16")).ns;
  EXPECT_GT(ns, 1.1e6);  // 989 TFLOP/s would be 1.11 ms
  EXPECT_LT(ns, 2.2e6);
  ns = (*estimate)(op_of("copy bytes=1000000000")).ns;  // 2 GB at 3.35 TB/s
  EXPECT_GT(ns, 0.6e6);
  EXPECT_LT(ns, 0.9e6);
}

TEST(Convolution, HalfPrecisionWithoutArithmeticOfItsOwnTakesTheTimeOfSingle) {
  auto gpu = sheet("invented", "pascal", 6, 1, 28, 1582, 484, 3, 11.3, 0.2, 0);
  auto estimate = estimator(gpu);
  const std::string layer = "convolution n=12 c=128 k=128 h=56 w=56 kh=3 kw=3 pad_h=1 pad_w=1";
  const double half = (*estimate)(op_of(layer + " dtype=f16 compute=f16")).ns;
  EXPECT_DOUBLE_EQ(half, (*estimate)(op_of(layer)).ns);
}

// DeepBench, T4, batch 16, 3×3: 64 channels a side run at a quarter of the rate of 128, because the
// tiles of the weight gradient are 128 channels wide.
TEST(Convolution, NarrowWeightGradientsPayForWholeTilesOnTuring) {
  auto gpu = sheet("t4", "turing", 7, 5, 40, 1590, 320, 4, 8.1, 65, 0);
  auto estimate = estimator(gpu);
  const std::string rest = " kh=3 kw=3 pad_h=1 pad_w=1 dtype=f16 compute=f16 direction=";
  const std::string narrow = "convolution n=16 c=64 k=64 h=80 w=350" + rest;
  const std::string wide = "convolution n=16 c=128 k=128 h=40 w=175" + rest;
  auto ratio = [&](const char* direction) {
    return (*estimate)(op_of(narrow + direction)).ns / (*estimate)(op_of(wide + direction)).ns;
  };
  EXPECT_NEAR(ratio("weight_gradient"), 3.5, 0.7);
  EXPECT_NEAR(ratio("forward"), 1.46, 0.3);
}

// Channels come in slices of 32: a second one costs its whole time, however little of it is used.
TEST(Convolution, APartOfASliceTakesTheTimeOfAWholeOne) {
  auto estimate = estimator(test_gpus()[1]);
  auto ns = [&](int channels) {
    return (*estimate)(op_of("convolution n=64 k=64 h=224 w=224 kh=7 kw=7 stride_h=2 stride_w=2 "
                             "pad_h=3 pad_w=3 dtype=f16 compute=f16 layout=channels_first c=" +
                             std::to_string(channels)))
        .ns;
  };
  EXPECT_GT(ns(40), 0.8 * ns(64));
  EXPECT_GT(ns(40), 1.4 * ns(32));
}

// A Linear over four attention heads of ten million positions, and its weights' gradient: streams.
TEST(Gemm, TwoTinySidesStreamTheThird) {
  auto estimate = estimator(test_gpus()[3]);
  for (const char* sides : {"m=4 n=10616832 k=4", "m=4 n=4 k=10616832"}) {
    Op op = op_of(std::string("gemm a=f16 b=f16 d=f16 compute=f16 ") + sides);
    const double rate = bytes_moved(op.work) / (*estimate)(op).ns;
    EXPECT_GT(rate, 0.4 * 936) << sides;
    EXPECT_LT(rate, 0.9 * 936) << sides;
  }
}

// Tables of 8-bit products hold the conversion of activations from 16 bits, which a recording has
// as a kernel of its own.
TEST(Gemm, RecordedProductsOf8BitsComeWithoutTheConversion) {
  auto catalog = catalog::Catalog::load(kCatalog);
  ASSERT_TRUE(catalog) << catalog.error().message;
  const auto h100 = catalog->gpu("h100-sxm");
  ASSERT_TRUE(h100) << h100.error().message;
  const auto estimate = estimator(*h100);
  auto ns = [&](const char* sizes, const char* type, const char* kernel) {
    Op op = op_of("gemm a=" + std::string(type) + " b=" + type + " d=bf16 compute=" + type +
                  " transpose_a=1 " + sizes);
    op.name = kernel;
    return (*estimate)(op).ns;
  };
  // An output layer's gradient: 1.65 ms in a published profile of GPT training (modded-nanogpt,
  // October 2025).
  const char* const narrow = "m=768 n=32768 k=50304";
  const double alone = ns(narrow, "f8e4m3", "cublasLtMatmul");
  EXPECT_NEAR(alone, 1.65e6, 0.25 * 1.65e6);
  EXPECT_LT(alone, 0.5 * ns(narrow, "f8e4m3", "trtllm::"));
  EXPECT_LT(ns(narrow, "f8e4m3", "a kernel of vLLM"), ns(narrow, "f8e4m3", "vllm::"));
  // Nothing is faster than the arithmetic; products of 16 bits have no conversion.
  for (const char* sizes : {narrow, "m=8192 n=8192 k=8192", "m=16 n=65536 k=65536"}) {
    const Op op = op_of(std::string("gemm ") + sizes);
    EXPECT_GE(ns(sizes, "f8e4m3", "cublasLtMatmul"),
              flops(op.work) / (1e3 * h100->peak_tflops.at(DType::f8e4m3)))
        << sizes;
    EXPECT_EQ(ns(sizes, "bf16", "cublasLtMatmul"), ns(sizes, "bf16", "")) << sizes;
  }
}

// A dimension of up to 4096 takes one pass through memory, so two of 256 take two, as many as one
// of 65536.
// Liger-Kernel's Jensen-Shannon loss of rows of 16,384 on H100 PCIe, with the registers that ptxas
// left it: measured 10.96 ms, of which reading and writing the data is 1.9.
TEST(Spills, TakeTheirTimeWhereTheyLeaveTheCaches) {
  const auto estimate =
      estimator(sheet("h100-pcie", "hopper", 9, 0, 114, 1755, 2039, 50, 51, 756, 378));
  Op op = op_of("triton_kernel bytes_read=2147483648 bytes_written=1073741824 exact=1 num_warps=4");
  op.geometry.grid = {8192, 1, 1}, op.geometry.block = {128, 1, 1}, op.geometry.registers = 32;
  auto ms = [&](std::int64_t spilled, std::int32_t stack) {
    auto& work = std::get<TritonKernel>(op.work);
    work.spilled = spilled, work.stack = stack;
    return (*estimate)(op).ns * 1e-6;
  };
  const double without = ms(0, 0), with = ms(std::int64_t{13} << 30, 5160);
  EXPECT_GT(with, without + 4);
  EXPECT_LT(with, without + 10);
  // 16 bytes of each thread stay in L1.
  EXPECT_NEAR(ms(std::int64_t{13} << 30, 16), without, 1e-9);
  // One block an SM keeps less outside of registers than sixteen: more of it stays in L2.
  op.geometry.registers = 255;
  EXPECT_LT(ms(std::int64_t{13} << 30, 1000), with);
}

// The loss of 16,384 tokens on A100, whose rows one block takes: PyTorch 2.4 gave it 32 threads,
// and 0.5 ms (Liger-Kernel's table, cross_entropy: what rows of 4,096, 8,192 and 16,384 take beside
// their softmax).
TEST(CrossEntropy, RowsThatOneBlockTakesInTurn) {
  const auto estimate =
      estimator(sheet("a100-80gb-sxm", "ampere", 8, 0, 108, 1410, 2039, 40, 19.5, 312, 156));
  Op op = op_of("cross_entropy rows=16384 cols=4096");
  op.geometry.grid = {1, 1, 1};
  op.geometry.block = {32, 1, 1};
  EXPECT_NEAR((*estimate)(op).ns, 0.51e6, 0.02e6);
  op.geometry.block = {1024, 1, 1};
  EXPECT_NEAR((*estimate)(op).ns, 18e3, 3e3);
  op.geometry.grid = {512, 1, 1};
  EXPECT_LT((*estimate)(op).ns, 6e3);
}

// ATen's block kernel for rows that do not fit into shared memory, 16,384 of them in fp32 on A100
// (Liger-Kernel's table): 1.95 ms with 16,384 columns, which stay in L2, and 5.3 with 32,768, which
// do not.
TEST(Softmax, LongRowsAreReadThreeTimes) {
  const auto estimate =
      estimator(sheet("a100-80gb-sxm", "ampere", 8, 0, 108, 1410, 2039, 40, 19.5, 312, 156));
  auto ms = [&](const char* text) { return (*estimate)(op_of(text)).ns * 1e-6; };
  const double near = ms("softmax rows=16384 cols=16384 reads=3");
  const double far = ms("softmax rows=16384 cols=32768 reads=3");
  EXPECT_LT(ms("softmax rows=16384 cols=32768"), 3.2);
  EXPECT_NEAR(far, 5.3, 0.8);
  EXPECT_GT(far, 3 * near);
}

TEST(Fft, PassesAreCountedByDimension) {
  auto estimate = estimator(test_gpus()[3]);
  auto ns = [&](const char* fft) {
    return (*estimate)(op_of(std::string("fft dtype=c64 ") + fft)).ns;
  };
  const double pass = ns("n=4096 batch=16384 rank=1");
  EXPECT_NEAR(ns("n=65536 batch=1024 rank=2") / pass, 2, 0.1);
  EXPECT_NEAR(ns("n=65536 batch=1024 rank=1") / pass, 2, 0.1);
  EXPECT_NEAR(ns("n=16777216 batch=4 rank=3") / pass, 3, 0.1);
}

// One block a channel: 64 channels cannot draw what A100's memory delivers, 256 can.
TEST(BatchNorm, FewChannelsApartDoNotFillTheMemory) {
  auto estimate = estimator(test_gpus()[2]);
  auto ns = [&](int channels, const char* more) {
    return (*estimate)(op_of("normalization kind=batch direction=backward rows=" +
                             std::to_string(channels) +
                             " cols=" + std::to_string(64 * 602112 / channels) + more))
        .ns;
  };
  EXPECT_GT(ns(64, ""), 1.5 * ns(256, ""));
  EXPECT_NEAR(ns(64, " channels_last=1") / ns(256, " channels_last=1"), 1, 0.01);
}

// The classes of each voxel of an image: millions of rows of four columns. (Older GPUs have
// measured models, none of which saw rows this short.)
TEST(Softmax, ManyShortRowsRunAtTheSpeedOfMemory) {
  for (const catalog::Gpu& gpu : test_gpus()) {
    if (gpu.capability_major < 8) continue;
    auto estimate = estimator(gpu);
    const double plain = (*estimate)(op_of("pointwise elements=33554432 dtype=f16 "
                                           "bytes_read=67108864 bytes_written=67108864"))
                             .ns;
    for (const char* direction : {"", " direction=backward"})
      EXPECT_LT(
          (*estimate)(op_of(std::string("softmax rows=8388608 cols=4 in=f16 out=f16") + direction))
              .ns,
          6 * plain)
          << gpu.name << direction;
  }
}

TEST(BatchNorm, TorchsOwnReadsAnElementAtATime) {
  auto estimate = estimator(test_gpus()[2]);
  Op op = op_of("normalization kind=batch direction=backward rows=64 cols=602112 dtype=f16");
  const double cudnn = (*estimate)(op).ns;
  op.name = "void at::native::batch_norm_backward_kernel<c10::Half, c10::Half, float, int>";
  EXPECT_GT((*estimate)(op).ns, 1.5 * cudnn);
}

TEST(Estimate, TheArithmeticIsTheChipsNotTheRecordings) {
  // A recording made for a part without units for bf16 says f32; one made for a part with them,
  // bf16. Predicted for either, both take the same.
  const Op recorded_for_volta = op_of("gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16 compute=f32");
  const Op recorded_for_ampere =
      op_of("gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16 compute=bf16");
  for (const auto& gpu : test_gpus()) {
    const auto e = estimator(gpu);
    EXPECT_NEAR((*e)(recorded_for_volta).ns, (*e)(recorded_for_ampere).ns,
                0.2 * (*e)(recorded_for_ampere).ns)
        << gpu.name;
  }
}

TEST(Estimate, OldLibrariesKeepTheModelsOfTheirTime) {
  const auto gpu = test_gpus()[5];
  const Op op = op_of("gemm m=4096 n=512 k=4096 a=bf16 b=bf16 d=bf16 compute=bf16 transpose_a=1");
  auto with = [&](const char* torch) {
    auto made = make_estimator(gpu, kCatalog, "", {torch});
    EXPECT_TRUE(made) << made.error().message;
    return (**made)(op);
  };
  EXPECT_FALSE(with("2.1.0+cu121").cool);
  EXPECT_TRUE(with("2.15.0+cu132").cool);
  EXPECT_TRUE(with("").cool);  // nobody said: today's
  EXPECT_EQ(with("2.15.0").ns, with("").ns);
  EXPECT_NE(with("2.1.0").ns, with("").ns);
}

TEST(Estimate, CommunicationIsNotItsBusiness) {
  auto estimate = estimator(test_gpus()[2]);
  Estimate e = (*estimate)(op_of("collective bytes=1048576"));
  EXPECT_EQ(e.origin, Origin::unknown);
  EXPECT_EQ(e.ns, 0);
}

// Of this thread: what else runs on the machine does not enter.
double cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

// 50 ms and 1 µs are promised; twice that is allowed for a processor whose other half is busy.
TEST(Estimate, LoadsInFiftyMillisecondsAndAnswersInAMicrosecond) {
  auto gpu = test_gpus()[2];
  std::unique_ptr<Estimator> estimate;
  double load = 1e18;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double begin = cpu_ns();
    estimate = estimator(gpu);
    load = std::min(load, 1e-6 * (cpu_ns() - begin));
  }
  EXPECT_LT(load, 100);
  auto each = [&](const std::vector<Op>& ops) {
    double sum = 0, best = 1e18;
    for (int repeat = 0; repeat < 10; ++repeat) {
      const double begin = cpu_ns();
      for (int i = 0; i < 50; ++i)
        for (const Op& op : ops) sum += (*estimate)(op).ns;
      best = std::min(best, (cpu_ns() - begin) / (50.0 * static_cast<double>(ops.size())));
    }
    EXPECT_GT(sum, 0);
    return best;
  };
  std::vector<Op> ops;
  for (const char* text : kOps) ops.push_back(op_of(text));
  const double all = each(ops);
  const double gemm = each({op_of("gemm m=4096 n=2048 k=8192 a=f16 b=f16 d=f16 compute=f16")});
  const double conv =
      each({op_of("convolution n=32 c=64 k=64 h=56 w=56 kh=3 kw=3 pad_h=1 pad_w=1")});
  EXPECT_LT(all, 2000) << "ns per op";
  std::printf("%.1f ms to load, %.0f ns per op, %.0f a product, %.0f a convolution\n", load, all,
              gemm, conv);
}

TEST(ModelFile, ErrorsNameTheLine) {
  auto wrong = ModelFile::parse("maya-model 1\n[gemm]\nfloor_ns fast\n", "x.model");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("x.model:3"), std::string::npos);
  EXPECT_FALSE(ModelFile::parse("maya-model 7\n", "x.model"));
  EXPECT_FALSE(ModelFile::parse("", "x.model"));
}

TEST(ModelFile, NarrowerScopesWin) {
  auto file = ModelFile::parse(
      "maya-model 1\n[f]\na 1\nb 1\n[f ampere]\na 2\n[f ampere-8.0]\nsource s\na 3\n", "x");
  ASSERT_TRUE(file);
  auto gpus = test_gpus();
  Section a100 = file->section("f", make_chip(gpus[2])),
          gamer = file->section("f", make_chip(gpus[3]));
  EXPECT_EQ(a100.get("a", 0), 3);
  EXPECT_EQ(a100.get("b", 0), 1);
  EXPECT_TRUE(a100.fitted());
  EXPECT_EQ(gamer.get("a", 0), 2);
  EXPECT_FALSE(gamer.fitted());
}

}  // namespace
}  // namespace maya::estimate
