// Grouped GEMMs: sizes that lie on the device, known or not.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "decode/decode.h"

namespace maya::decode {
namespace {

constexpr std::uint64_t array_at = 0x7f0000000000;
std::array<std::int32_t, 6> sizes_there;
bool sizes_known;

const void* known(std::uint64_t address, std::uint64_t bytes) {
  return sizes_known && address == array_at && bytes <= sizeof sizes_there ? sizes_there.data()
                                                                           : nullptr;
}

struct Parameter {
  std::int32_t mode{4}, padding{}, groups{2}, padding2{};
  std::uint64_t device{array_at}, host{};
  char rest[64]{};
};

Decoded decode(const Parameter& parameter) {
  Kernel kernel;
  kernel.mangled = kernel.demangled =
      "void "
      "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::"
      "GroupProblemShape<cute::tuple<int, "
      "int, int>>, cutlass::bfloat16_t>>(Params)";
  kernel.parameter_sizes = {sizeof(Parameter)};
  kernel.parameter_offsets = {0};
  void* arguments[] = {const_cast<Parameter*>(&parameter)};
  Launch launch{&kernel, {{132, 1, 1}, {384, 1, 1}}, arguments, nullptr, known};
  return prepare(kernel)->decode(launch);
}

TEST(Grouped, RowsDealtOutAddUp) {
  sizes_known = true, sizes_there = {100, 512, 256, 300, 512, 256};
  auto work = std::get<Gemm>(decode({}).op.work);
  EXPECT_EQ(work.m, 400);
  EXPECT_EQ(work.n, 512);
  EXPECT_EQ(work.k, 256);
  EXPECT_EQ(work.groups, 2);
  EXPECT_EQ(work.a, DType::bf16);
}

TEST(Grouped, DepthDealtOutKeepsTheWork) {
  sizes_known = true, sizes_there = {64, 512, 100, 64, 512, 300};
  auto work = std::get<Gemm>(decode({}).op.work);
  EXPECT_EQ(work.m * work.n * work.k * work.batch, 64 * 512 * 400);
  EXPECT_EQ(work.batch, 2);
}

TEST(Grouped, SizesOnTheHostAreReadThere) {
  sizes_known = false;
  std::array<std::int32_t, 6> host{8, 16, 32, 8, 16, 32};
  Parameter parameter;
  parameter.host = reinterpret_cast<std::uint64_t>(host.data());
  EXPECT_EQ(std::get<Gemm>(decode(parameter).op.work).m, 16);
}

TEST(Grouped, UnknownSizesAreAnUnknownKernel) {
  sizes_known = false;
  EXPECT_FALSE(decode({}).recognised);
}

}  // namespace
}  // namespace maya::decode
