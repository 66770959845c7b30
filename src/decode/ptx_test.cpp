// Kernels that Triton compiled (testdata/triton_kernels.py), whose work is known by construction.
#include "decode/ptx.h"

#include "decode/triton_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace maya::decode {
namespace {

constexpr std::uint64_t device = 0x7f0000000000, each = std::uint64_t{1} << 36;

std::uint64_t extent(std::uint64_t address) {
  return address >= device ? each - address % each : 0;
}

struct Case {
  std::string text;
  Kernel kernel;
  std::vector<std::uint64_t> values;
  std::vector<void*> pointers;
  Launch launch;

  // The first `tensors` parameters are device pointers, the rest scalars, then Triton's two scratch
  // pointers.
  Case(const std::string& file, const std::string& entry, int tensors,
       std::vector<std::uint64_t> scalars, std::array<std::uint32_t, 3> grid) {
    std::ifstream in(MAYA_SOURCE_DIR "/src/decode/testdata/" + file);
    std::stringstream s;
    s << in.rdbuf();
    text = s.str();
    kernel.mangled = entry;
    kernel.ptx = text;
    auto program = ptx::parse(text, entry);
    EXPECT_TRUE(program) << file;
    if (!program) return;
    EXPECT_EQ(program->unknown_opcodes, 0);
    for (std::size_t i = 0; i < program->parameters.size(); ++i) {
      bool tensor = static_cast<int>(i) < tensors;
      std::size_t scalar = i - static_cast<std::size_t>(tensors);
      values.push_back(tensor ? device + each * i : scalar < scalars.size() ? scalars[scalar] : 0);
      kernel.parameter_sizes.push_back(program->parameters[i].bytes);
      kernel.parameter_offsets.push_back(0);
    }
    for (auto& v : values) pointers.push_back(&v);
    launch = {&kernel, {grid, {128, 1, 1}}, pointers.data(), extent, nullptr};
  }
  TritonKernel decode() {
    auto decoder = prepare(kernel);
    Decoded d = decoder->decode(launch);
    EXPECT_TRUE(d.recognised);
    EXPECT_TRUE(std::holds_alternative<TritonKernel>(d.op.work));
    return std::get<TritonKernel>(d.op.work);
  }
};

TEST(Ptx, PointwiseStopsAtTheMask) {
  TritonKernel w = Case("add_80.ptx", "add", 3, {1000001}, {977, 1, 1}).decode();
  EXPECT_EQ(w.bytes_read, 8000008);
  EXPECT_EQ(w.bytes_written, 4000004);
  EXPECT_TRUE(w.exact);
  EXPECT_EQ(w.tensor_flops, 0);
  EXPECT_EQ(w.num_warps, 4);
}

TEST(Ptx, LoopsRunToTheSizeAndRereadOperandsCountOnce) {
  TritonKernel w =
      Case("weighted_sum_80.ptx", "weighted_sum", 3, {1000, 3000}, {250, 1, 1}).decode();
  EXPECT_EQ(w.bytes_read, 1000 * 3000 * 2 + 3000 * 4);
  EXPECT_EQ(w.bytes_written, 4000);
  EXPECT_GE(w.flops, 2 * 1000 * 3072);        // full tiles are computed
  EXPECT_LE(w.flops, 1.2 * 2 * 1000 * 3072);  // and summed over the threads
}

TEST(Ptx, RowsPickedByUnknownIndexAreCountedWhole) {
  TritonKernel w = Case("gather_80.ptx", "gather", 3, {500}, {4096, 1, 1}).decode();
  EXPECT_EQ(w.bytes_written, 4096 * 500 * 4);
  EXPECT_NEAR(static_cast<double>(w.bytes_read), 4096.0 * (500 * 4 + 8), 4096 * 8);
}

TEST(Ptx, MatrixProductOnThreeGenerationsOfTensorCores) {
  for (const char* file : {"matmul_80.ptx", "matmul_90.ptx", "matmul_100.ptx"}) {
    TritonKernel w =
        Case(file, "matmul", 3, {2048, 1024, 4096, 4096, 1024, 1024}, {32, 16, 1}).decode();
    EXPECT_EQ(w.tensor_flops, 2ll * 2048 * 1024 * 4096) << file;
    EXPECT_EQ(w.bytes_read, 2 * (2048 * 4096 + 4096 * 1024)) << file;
    EXPECT_EQ(w.bytes_written, 2 * 2048 * 1024) << file;
    EXPECT_TRUE(w.dtype == DType::bf16 || w.dtype == DType::f16) << file;
  }
}

TEST(Ptx, CausalAttentionGrowsFromBlockToBlock) {
  TritonKernel w = Case("causal_80.ptx", "causal", 4, {2048, 0x3e000000}, {32, 8, 1}).decode();
  double pairs = 0;
  for (int block = 0; block < 32; ++block) pairs += 64.0 * 64 * (block + 1);
  double expected = 8 * pairs * 4 * 32;
  EXPECT_NEAR(static_cast<double>(w.tensor_flops), expected, 0.01 * expected);
  EXPECT_EQ(w.bytes_written, 8 * 2048 * 32 * 2);
  EXPECT_EQ(w.bytes_read, 3 * 8 * 2048 * 32 * 2);
}

TEST(Ptx, GeneratedNamesDoNotMislead) {
  Case c("add_80.ptx", "add", 3, {1000}, {1, 1, 1});
  c.kernel.mangled = "triton_tem_fused_cat_mm_transpose_view_21";
  const std::string entry = ".entry add(";
  c.text.replace(c.text.find(entry), entry.size(), ".entry " + c.kernel.mangled + "(");
  c.kernel.ptx = c.text;
  c.decode();
}

TEST(Ptx, TellsWhatAKernelOnlyReads) {
  Case c("add_80.ptx", "add", 3, {1000}, {1, 1, 1});
  prepare(c.kernel);
  ASSERT_GE(c.kernel.read_only.size(), 4u);
  EXPECT_TRUE(c.kernel.read_only[0]);
  EXPECT_TRUE(c.kernel.read_only[1]);
  EXPECT_FALSE(c.kernel.read_only[2]);
  EXPECT_TRUE(c.kernel.read_only[3]);
}

TEST(Ptx, ArgumentsChangeTheKeyAddressesDoNot) {
  Case a("add_80.ptx", "add", 3, {1000}, {1, 1, 1}), b("add_80.ptx", "add", 3, {1000}, {1, 1, 1});
  b.values[0] += 4096;
  auto decoder = prepare(a.kernel);
  std::byte x[256], y[256];
  std::size_t n = decoder->key(a.launch, x, sizeof x);
  ASSERT_EQ(n, decoder->key(b.launch, y, sizeof y));
  EXPECT_EQ(std::memcmp(x, y, n), 0);
  b.values[3] = 1001;
  ASSERT_EQ(n, decoder->key(b.launch, y, sizeof y));
  EXPECT_NE(std::memcmp(x, y, n), 0);
}

TEST(TritonCache, FindsThePtxByTheCubinsBytes) {
  std::string root = testing::TempDir() + "/maya_triton_cache";
  for (const char* hash : {"AAAA", "BBBB"}) {
    std::filesystem::create_directories(root + "/" + hash);
    std::ofstream(root + "/" + hash + "/kernel.cubin") << "\x7f"
                                                       << "ELF of " << hash;
    std::ofstream(root + "/" + hash + "/kernel.ptx") << "ptx of " << hash;
  }
  setenv("TRITON_CACHE_DIR", root.c_str(), 1);
  auto found = find_triton_file("kernel",
                                "\x7f"
                                "ELF of BBBB",
                                ".ptx");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "ptx of BBBB");
  EXPECT_FALSE(find_triton_file("kernel",
                                "\x7f"
                                "ELF of CCCC",
                                ".ptx"));
  EXPECT_FALSE(find_triton_file("other",
                                "\x7f"
                                "ELF of BBBB",
                                ".ptx"));
  // Compiled later: found on the next miss.
  std::filesystem::create_directories(root + "/DDDD");
  std::ofstream(root + "/DDDD/late.cubin") << "\x7f"
                                           << "ELF";
  std::ofstream(root + "/DDDD/late.ptx") << "late";
  EXPECT_TRUE(find_triton_file("late",
                               "\x7f"
                               "ELF",
                               ".ptx"));
  unsetenv("TRITON_CACHE_DIR");
  std::filesystem::remove_all(root);
}

TEST(Ptx, AssertionsWriteNothing) {
  auto program = ptx::parse(R"(
.visible .entry look(.param .u64 .ptr look_0, .param .u64 .ptr look_1) {
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<8>;
  ld.param.b64 %rd1, [look_0];
  ld.param.b64 %rd2, [look_1];
  ld.global.b32 %r1, [ %rd1 + 0 ];
  setp.lt.s32 %p1, %r1, 100;
  @%p1 bra $good;
  call.uni __assertfail, (param0, param1, param2, param3, param4);
  trap;
$good:
  st.global.b32 [ %rd2 + 0 ], %r1;
  ret;
})",
                            "look");
  ASSERT_TRUE(program);
  EXPECT_EQ(ptx::read_only_parameters(*program), (std::vector<bool>{true, false}));
}

TEST(Ptx, BrokenTextIsRefusedOrCountedAsInexact) {
  EXPECT_FALSE(ptx::parse("", "add"));
  EXPECT_FALSE(ptx::parse(".visible .entry other() { ret; }", "add"));
  std::ifstream in(MAYA_SOURCE_DIR "/src/decode/testdata/matmul_80.ptx");
  std::stringstream s;
  s << in.rdbuf();
  std::string text = s.str();
  // Cut at many places: no crash, no endless loop.
  for (std::size_t cut = 100; cut < text.size(); cut += 1499) {
    auto program = ptx::parse(std::string_view(text).substr(0, cut), "matmul");
    if (!program) continue;
    Kernel kernel;
    kernel.mangled = "matmul";
    std::vector<std::uint64_t> values(program->parameters.size(), 77);
    std::vector<void*> pointers;
    for (auto& v : values) pointers.push_back(&v);
    for (const auto& p : program->parameters) kernel.parameter_sizes.push_back(p.bytes);
    Launch launch{&kernel, {{3, 3, 1}, {128, 1, 1}}, pointers.data(), nullptr, nullptr};
    ptx::count(*program, launch);
  }
  // A loop that never ends is cut off and says so.
  auto endless = ptx::parse(".visible .entry spin() { LOOP: bra LOOP; }", "spin");
  ASSERT_TRUE(endless);
  Kernel kernel;
  Launch launch{&kernel, {{1, 1, 1}, {32, 1, 1}}, nullptr, nullptr, nullptr};
  EXPECT_FALSE(ptx::count(*endless, launch).exact);
}

}  // namespace
}  // namespace maya::decode
