#include "shim/nvrtc/source.h"

#include <gtest/gtest.h>

namespace maya::shim::nvrtc {
namespace {

using Names = std::vector<std::string>;

Names names(std::string_view source) {
  Names list;
  for (const Kernel& kernel : kernels(source)) list.push_back(kernel.name);
  return list;
}

TEST(NvrtcSource, FindsKernelsWhateverStandsBetween) {
  EXPECT_EQ(names("extern \"C\" __global__ void add(float* a) {}"), Names{"add"});
  EXPECT_EQ(names("__global__ void __launch_bounds__(128, 4) scale(int n);\n__global__ void "
                  "scale(int n) {}"),
            Names{"scale"});
  EXPECT_EQ(
      names("template <class T> __global__\nvoid\nfirst(T) {} static __global__ void second() {}"),
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
  const std::string_view whole =
      "struct ReduceJitOp { using scalar_t = std::complex<float>; }; __global__ void "
      "reduction_prod_kernel(ReduceJitOp r){} __global__ void zeta_vectorized4_kernel(const int N, "
      "Array<char*, 2+1> data, OffsetCalculator<1> c) { float arg0[8]; float out0[8];";
  for (std::size_t length = 0; length <= whole.size(); ++length)
    for (const Kernel& kernel : kernels(whole.substr(0, length)))
      for (const std::string& type : kernel.parameters) EXPECT_GE(bytes_of(type), 0) << type;
}

TEST(NvrtcSource, ParametersHaveTypesAndSizes) {
  const auto found = kernels(
      "extern \"C\" __global__ void k(const float* __restrict__ x, float *y, unsigned long long n, "
      "std::complex<float> a, Array<char*, 2+1> data, const CArray<int, 2, 1, 1> c, Mine m)");
  ASSERT_EQ(found.size(), 1u);
  std::vector<int> sizes;
  for (const std::string& type : found[0].parameters) sizes.push_back(bytes_of(type));
  EXPECT_EQ(sizes, (std::vector<int>{8, 8, 8, 8, 24, 48, 0}));
}

TEST(NvrtcSource, JittedKernelsOfPyTorchStandForPrecompiledOnes) {
  auto twin = [](const char* source) { return kernels(source).at(0).stands_for; };
  EXPECT_EQ(
      twin("extern \"C\" __global__\nvoid zeta_vectorized4_kernel(\n const int N,\n Array<char*, "
           "2+1> data,\n float scalar_val) //[2+1],\n{\n constexpr int vec_size = 4;\n at::Half "
           "arg0[8];\n at::Half arg1[8];\n float out0[8];\n"),
      "void at::native::vectorized_elementwise_kernel<4, at::native::JittedFunctor<float, "
      "at::native::zeta(at::TensorIteratorBase&)::{lambda(c10::Half, c10::Half)#1}>, "
      "std::array<char*, 3ul>, false>(int, std::array<char*, 3ul>)");
  EXPECT_EQ(twin("struct ReduceJitOp { using scalar_t = std::complex<float>; using out_scalar_t = "
                 "float; }; __global__ void reduction_prod_kernel(ReduceJitOp r){ r.run(); }"),
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::complex<float>, "
            "at::native::prod_functor<c10::complex<float>>, unsigned int, float, 4, 4> >("
            "at::native::ReduceOp<c10::complex<float>, "
            "at::native::prod_functor<c10::complex<float>>, unsigned int, float, 4, 4>)");
  EXPECT_EQ(twin("__global__ void mine(float* x, int n)"), "");
}

TEST(NvrtcSource, ExpressionsBecomeSymbols) {
  EXPECT_EQ(symbol("kernel"), "kernel");
  EXPECT_EQ(symbol("&ns::kernel<float, 4>"), "ns_kernel_float_4");
}

TEST(NvrtcSource, PtxListsEveryKernel) {
  std::string text = ptx({{"a", {"int", "float*", "Own"}, {}}, {"b", {}, {}}}, "sm_90");
  EXPECT_NE(text.find(".target sm_90"), std::string::npos);
  EXPECT_NE(text.find(".visible .entry a("), std::string::npos);
  EXPECT_NE(text.find(".visible .entry b("), std::string::npos);
  EXPECT_NE(text.find(".param .b32 p0,\n  .param .b64 p1,\n  .param .align 8 .b8 p2[1]"),
            std::string::npos);
}

}  // namespace
}  // namespace maya::shim::nvrtc
