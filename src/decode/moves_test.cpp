// Kernels that move elements: copies, concatenation, gathers, gradients of tables.
#include <gtest/gtest.h>

#include "decode/testing/call.h"

namespace maya::decode {
namespace {

// CatArrayBatchedCopy of two inputs: (output, table, sizes and strides, dimension, its stride).
Pointwise joined(Call& call, std::vector<std::byte> table, std::uint32_t blocks) {
  struct Strides {
    std::uint32_t v[8];
  };
  return call.arg(A)
      .raw(std::move(table))
      .arg(Strides{})
      .arg(std::int32_t{})
      .arg(std::uint32_t{})
      .grid(blocks, 2)
      .work<Pointwise>();
}

TEST(Copy, CatAddsItsInputs) {
  std::vector<std::byte> table(2720);
  put<std::uint32_t>(table, 1024 + 1024, 300), put<std::uint32_t>(table, 1024 + 1024 + 4, 50);
  Call call(
      "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::(anonymous "
      "namespace)::"
      "OpaqueType<2u>, unsigned int, 1, 128, 1>(at::native::(anonymous "
      "namespace)::OpaqueType<2u>*, "
      "at::native::(anonymous namespace)::CatArrInputTensorMetadata<at::native::(anonymous "
      "namespace)::"
      "OpaqueType<2u>, unsigned int, 128, 1>, at::native::(anonymous "
      "namespace)::TensorSizeStride<unsigned int, "
      "4u>, int, unsigned int)");
  Pointwise w = joined(call, table, 8);
  EXPECT_EQ(w.elements, 350);
  EXPECT_EQ(w.bytes_read, 700);
  EXPECT_EQ(w.bytes_written, 700);
}

// The next four hold what recorded launches of torch 2.15 showed.
TEST(Copy, VectorizedCatCountsElements) {
  std::vector<std::byte> table(2720);
  put<std::uint32_t>(table, 2048, 64000), put<std::uint32_t>(table, 2052, 64000);
  Call call(
      "void at::native::(anonymous "
      "namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous namespace)::"
      "OpaqueType<2u>, unsigned int, 2, 128, 1, 16, 8>(char*, at::native::(anonymous namespace)::"
      "CatArrInputTensorMetadata<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, "
      "128, 1>, "
      "at::native::(anonymous namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)");
  Pointwise w = joined(call, table, 63);
  EXPECT_EQ(w.bytes_read, 256000);
  EXPECT_EQ(w.vector, 8);
}

TEST(Copy, RollIsTwoPieces) {
  Decoded d = Call(
                  "void at::native::roll_cuda_kernel<long>(long const*, long*, long, long, long, "
                  "long, long, long)")
                  .arg(A)
                  .arg(B)
                  .arg(std::int64_t{10})
                  .arg(std::int64_t{1})
                  .arg(std::int64_t{4})
                  .arg(std::int64_t{5})
                  .arg(std::int64_t{1})
                  .arg(std::int64_t{2})
                  .decode();
  ASSERT_EQ(d.semantics.parts.size(), 1u);
  EXPECT_EQ(d.semantics.inputs[0].address, A + 32);  // the last of five comes first
  EXPECT_EQ(d.semantics.outputs[0].size[1], 1);
  EXPECT_EQ(d.semantics.parts[0].outputs[0].address, B + 8);
  EXPECT_EQ(d.semantics.parts[0].inputs[0].size[2], 2);
}

TEST(Copy, ChunkCatWritesItsSliceOnce) {
  // Eight chunks of 100 MB of f32, from bf16 sources: the slice holds them all.
  Call call(
      "void at::native::detail::chunk_cat_cuda_kernel<float, c10::BFloat16>(c10::BFloat16**, "
      "float*, "
      "long*, long*, long*, long*, long*, long*, long, long, long)");
  for (int i = 0; i < 8; ++i) call.arg(A);
  auto w = call.arg(std::int64_t{800'000'000})
               .arg(std::int64_t{100'000'000})
               .arg(std::int64_t{2})
               .grid(5000, 8)
               .work<Pointwise>();
  EXPECT_EQ(w.bytes_written, 800'000'000);
  EXPECT_EQ(w.bytes_read, 400'000'000);
}

TEST(Index, GatherOfRows) {
  Call call(
      "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, "
      "long, long, bool)");
  auto w = call.arg(A)
               .arg(B)
               .arg(C)
               .arg(std::int32_t{2048})
               .arg(std::int64_t{1536})
               .arg(std::int64_t{50304})
               .arg(std::int64_t{1536})
               .arg(std::int64_t{1536})
               .arg(std::uint8_t{})
               .work<Gather>();
  EXPECT_EQ(w.rows, 2048);
  EXPECT_EQ(w.cols, 1536);
  EXPECT_EQ(w.table_rows, 50304);
}

TEST(Embedding, BackwardByFeature) {
  Call call(
      "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, "
      "long>(long const*, "
      "float const*, float*, int, long, int)");
  auto w = call.arg(A)
               .arg(B)
               .arg(C)
               .arg(std::int32_t{512})
               .arg(std::int64_t{768})
               .arg(std::int32_t{-1})
               .work<Scatter>();
  EXPECT_EQ(w.rows, 512);
  EXPECT_EQ(w.cols, 768);
}

}  // namespace
}  // namespace maya::decode
