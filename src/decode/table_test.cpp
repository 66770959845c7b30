#include "decode/table.h"

#include <gtest/gtest.h>

#include "decode/testing/call.h"

namespace maya::decode {
namespace {

Work decoded(const Row& row, std::string name, std::vector<std::int32_t> arguments) {
  Kernel kernel;
  kernel.mangled = kernel.demangled = std::move(name);
  std::vector<void*> pointers;
  for (auto& argument : arguments) {
    kernel.parameter_offsets.push_back(static_cast<std::uint16_t>(4 * pointers.size()));
    kernel.parameter_sizes.push_back(4);
    pointers.push_back(&argument);
  }
  const Name parsed = parse_name(kernel.demangled);
  Made made = from_rows({&row, 1}, kernel, parsed);
  if (!made) return {};
  Launch launch{&kernel, {{6, 2, 1}, {32, 4, 1}}, pointers.data(), nullptr, nullptr};
  return made->decode(launch).op.work;
}

TEST(Table, ReadsSizesFromArgumentsGridAndTemplates) {
  const Row row{.kernel = "my_norm",
                .op = "normalization kind=rms dtype=T0 rows=grid*t1 cols=max(a0,a1)-1"};
  const Work work = decoded(row, "void my_norm<float, 3>(int, int)", {7, 9});
  const auto* norm = std::get_if<Normalization>(&work);
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->kind, NormKind::rms);
  EXPECT_EQ(norm->dtype, DType::f32);
  EXPECT_EQ(norm->rows, 18);
  EXPECT_EQ(norm->cols, 8);
}

TEST(Table, FieldsFurtherLeftAndSizesOfTypesAreNumbers) {
  const Row row{.kernel = "my_copy",
                .op =
                    "pointwise dtype=T0 elements=a-1*2 bytes_read=elements*size(T0) "
                    "bytes_written=(bytes_read+2)/2"};
  const Work work = decoded(row, "void my_copy<__half>(int, int)", {1, 5});
  const auto* copy = std::get_if<Pointwise>(&work);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->bytes_read, 20);
  EXPECT_EQ(copy->bytes_written, 11);
}

TEST(Table, ConditionsAndPatternsChooseTheRow) {
  auto meets = [](std::string_view pattern, std::string_view when, const char* name) {
    return std::holds_alternative<Scan>(
               decoded({.kernel = pattern, .when = when, .op = "scan elements=7"}, name, {})) &&
           std::get<Scan>(
               decoded({.kernel = pattern, .when = when, .op = "scan elements=7"}, name, {}))
                   .elements == 7;
  };
  EXPECT_TRUE(meets("abc", "", "void x::abc<true>(int)"));
  EXPECT_FALSE(meets("abc", "", "void x::abcd<true>(int)"));
  EXPECT_TRUE(meets("ab*", "", "void x::abcd(int)"));
  EXPECT_TRUE(meets("q|*cd", "", "void x::abcd(int)"));
  EXPECT_TRUE(meets("a*d", "", "void x::abcd(int)"));
  EXPECT_TRUE(meets("abc", "t0 p0=int", "void x::abc<true>(int)"));
  EXPECT_FALSE(meets("abc", "!t0", "void x::abc<true>(int)"));
  EXPECT_TRUE(meets("abc", "T0=f32 has:b !of:double", "void x::abc<float>(int)"));
}

TEST(Table, EveryRowOfTheFamiliesIsUnderstood) {
  for (auto rows : {norm_rows(), channels_last_rows(), embedding_rows(), loss_rows(), sort_rows(),
                    index_rows(), random_rows(), package_rows()}) {
    EXPECT_FALSE(rows.empty());
    for (const Row& row : rows) EXPECT_EQ(fault(row), "") << row.kernel << ": " << row.op;
  }
}

TEST(Table, FaultyRowsAreNamed) {
  EXPECT_EQ(fault({.kernel = "k", .op = "scan elements=a0"}), "");
  EXPECT_NE(fault({.kernel = "k", .op = "scam elements=a0"}), "");
  EXPECT_NE(fault({.kernel = "k", .op = "scan element=a0"}), "");
  EXPECT_NE(fault({.kernel = "k", .op = "scan elements=a0*"}), "");
  EXPECT_NE(fault({.kernel = "k", .when = "maybe", .op = "scan elements=a0"}), "");
  EXPECT_NE(fault({.kernel = "k", .op = "scan elements=a0", .touches = "x1=3"}), "");
  EXPECT_NE(fault({.kernel = "k", .op = "scan elements=a0", .values = "guess"}), "");
}

TEST(Table, ValuesAndTouchesFollow) {
  const Row row{.kernel = "my_scan",
                .op = "scan elements=a2",
                .touches = "w1=elements*8 r0=elements*8",
                .values = "scan function=sum out=a1:i64:elements in=a0:i64:elements",
                .always = true};
  Kernel kernel;
  kernel.demangled = "void my_scan(long*, long*, int)";
  kernel.parameter_offsets = {0, 8, 16};
  kernel.parameter_sizes = {8, 8, 4};
  std::uint64_t in = A, out = B;
  std::int32_t n = 5;
  void* arguments[] = {&in, &out, &n};
  Made made = from_rows({&row, 1}, kernel, parse_name(kernel.demangled));
  ASSERT_NE(made, nullptr);
  EXPECT_TRUE(made->touches_values());
  Launch launch{&kernel, {{1, 1, 1}, {32, 1, 1}}, arguments, nullptr, nullptr};
  const Decoded d = made->decode(launch);
  ASSERT_EQ(d.accesses.size(), 2u);
  EXPECT_EQ(d.accesses[0].address, B);
  EXPECT_EQ(d.accesses[0].bytes, 40u);
  EXPECT_EQ(d.semantics.kind, Semantics::Kind::scan);
  ASSERT_EQ(d.semantics.outputs.size(), 1u);
  EXPECT_EQ(d.semantics.outputs[0].size[0], 5);
  std::byte key[64];
  EXPECT_EQ(made->key(launch, key, sizeof key), 4u) << "only the count decides the op";
}

}  // namespace
}  // namespace maya::decode
