#include "shim/nvrtc/source.h"

#include <gtest/gtest.h>

namespace maya::shim::nvrtc {
namespace {

using Names = std::vector<std::string>;

TEST(NvrtcSource, FindsKernelsWhateverStandsBetween) {
  EXPECT_EQ(kernels("extern \"C\" __global__ void add(float* a) {}"), Names{"add"});
  EXPECT_EQ(kernels("__global__ void __launch_bounds__(128, 4) scale(int n);\n__global__ void "
                    "scale(int n) {}"),
            Names{"scale"});
  EXPECT_EQ(
      kernels(
          "template <class T> __global__\nvoid\nfirst(T) {} static __global__ void second() {}"),
      (Names{"first", "second"}));
}

TEST(NvrtcSource, SkipsCommentsAndStrings) {
  EXPECT_TRUE(kernels("// __global__ void a() {}\n/* __global__ void b() */ const char* t = "
                      "\"__global__ void c()\";")
                  .empty());
}

TEST(NvrtcSource, CutSourceEndsQuietly) {
  for (const char* text : {"__global__", "__global__ void", "__global__ void __launch_bounds__(",
                           "/* __global__", "\""})
    EXPECT_TRUE(kernels(text).empty()) << text;
}

TEST(NvrtcSource, ExpressionsBecomeSymbols) {
  EXPECT_EQ(symbol("kernel"), "kernel");
  EXPECT_EQ(symbol("&ns::kernel<float, 4>"), "ns_kernel_float_4");
}

TEST(NvrtcSource, PtxListsEveryKernel) {
  std::string text = ptx({"a", "b"}, "sm_90");
  EXPECT_NE(text.find(".target sm_90"), std::string::npos);
  EXPECT_NE(text.find(".visible .entry a("), std::string::npos);
  EXPECT_NE(text.find(".visible .entry b("), std::string::npos);
}

}  // namespace
}  // namespace maya::shim::nvrtc
