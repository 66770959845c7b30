#include "shim/nvrtc/straight.h"

#include <gtest/gtest.h>

#include "shim/nvrtc/source.h"

namespace maya::shim::nvrtc {
namespace {

std::string told(std::string_view source) {
  std::string text;
  for (const Touched& t : straight_accesses(source, source.find('(')))
    text += std::to_string(t.parameter) + ":" + std::to_string(t.reads) + "r" +
            std::to_string(t.writes) + "w " + t.type + " ";
  return text;
}

TEST(StraightKernel, EveryAccessOfAThreadIsSpelled) {
  EXPECT_EQ(told("void k(float* tx, const __nv_bfloat16* __restrict__ tb, float* out, int n) {\n"
                 "  float a = __ldg(tx + (long long)(threadIdx.x) + 512ll * blockIdx.x);\n"
                 "  float b = __bfloat162float(tb[i % 8ll]) * tb[i % 8ll];\n"
                 "  if (i < n) out[i] = a + b; }"),
            "0:1r0w float 1:1r0w __nv_bfloat16 2:0r1w float ");
  EXPECT_EQ(told("void k(double *x, double* y) { x[i] += y[i] == y[i + 1]; }"),
            "0:1r1w double 1:2r0w double ");
}

TEST(StraightKernel, WhatMayRepeatIsNotTold) {
  for (const char* body :
       {"for (int i = 0; i < n; ++i) y[i] = x[i];", "while (i < n) y[i++] = x[i];",
        "CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }", "__shared__ float s[32]; y[i] = x[i];",
        "load(x, i); y[i] = 0;", "float* z = y + i; *z = x[i];", "int unused = n;", "y[0];"})
    EXPECT_EQ(told(std::string("void k(float* x, float* y, int n) { ") + body + " }"), "") << body;
}

TEST(StraightKernel, CutSourceEndsQuietly) {
  const std::string whole =
      "(float* x, Array<float*, 2> a, float* y) { y[(i)] = __ldg(x + (i)) + x[i]; }";
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(straight_accesses(std::string_view(whole).substr(0, length), 0).empty()) << length;
  EXPECT_EQ(straight_accesses(whole, 0).size(), 2u);
}

TEST(StraightKernel, TheModuleTellsItsDecoder) {
  const auto found =
      kernels("extern \"C\" __global__ void add(half* x, half* y) { y[i] = x[i] + x[i + 1]; }");
  EXPECT_NE(ptx(found, "sm_90").find("\n// add touches 0 2 0 half;1 0 1 half;\n.visible"),
            std::string::npos);
}

}  // namespace
}  // namespace maya::shim::nvrtc
