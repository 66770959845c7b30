// Launches as PyTorch makes them, built by hand: name, geometry, argument bytes → op.
#include "decode/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "decode/functor.h"
#include "decode/name.h"
#include "decode/offsets.h"
#include "decode/testing/call.h"

namespace maya::decode {
namespace {

// An OffsetCalculator as ATen fills it: dimension 0 is the fastest.
std::vector<std::byte> offsets(std::vector<std::uint32_t> sizes,
                               std::vector<std::vector<std::uint32_t>> strides, int arguments) {
  std::vector<std::byte> bytes(Offsets::bytes(arguments));
  put<std::int32_t>(bytes, 0, static_cast<std::int32_t>(sizes.size()));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    put(bytes, 4 + 12 * d, sizes[d]);
    for (int a = 0; a < arguments; ++a) put(bytes, 304 + 4 * (arguments * d + a), strides[d][a]);
  }
  return bytes;
}

struct Three {
  std::uint64_t p[3];
};
struct Two {
  std::uint64_t p[2];
};
TEST(Name, TakesTemplatesAndParametersApart) {
  Name n = parse_name(
      "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
      "true>(int, float, "
      "float const*, float const*, float const*, float*, float*, float*)");
  EXPECT_EQ(n.base, "at::native::vectorized_layer_norm_kernel");
  EXPECT_EQ(n.leaf, "vectorized_layer_norm_kernel");
  ASSERT_EQ(n.templates.size(), 3u);
  EXPECT_EQ(template_number(n, 2), 1);
  ASSERT_EQ(n.parameters.size(), 8u);
  EXPECT_EQ(n.parameters[2], "float const*");
}

TEST(Name, ReadsNamesCutOffInTheMiddle) {
  Name n = parse_name("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::nat");
  EXPECT_EQ(n.leaf, "reduce_kernel");
  EXPECT_EQ(n.templates.size(), 3u);
  EXPECT_EQ(parse_name("").leaf, "");
}

TEST(Functor, SaysWhatItDoesAndOnWhat) {
  Functor f = parse_functor(
      "at::native::BinaryFunctor<c10::Half, c10::Half, bool, "
      "at::native::CompareEqFunctor<c10::Half> >",
      2);
  EXPECT_EQ(f.result, "bool");
  EXPECT_EQ(f.inputs.size(), 2u);
  EXPECT_TRUE(f.compares);
  f = parse_functor(
      "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
      "at::native::GeluType)::{lambda()#1}::operator()() "
      "const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
      1);
  EXPECT_EQ(f.function, "gelu");
  EXPECT_EQ(dtype_of(f.result), DType::bf16);
  f = parse_functor(
      "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 1);
  EXPECT_EQ(dtype_of(f.result), DType::bf16);
  EXPECT_EQ(dtype_of(f.inputs[0]), DType::f32);
}

TEST(Elementwise, VectorizedAddReadsTwoWritesOne) {
  Call call(
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::CUDAFunctor_add<c10::BFloat16>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, "
      "3ul>)");
  auto w =
      call.arg(std::int32_t{1 << 20}).arg(1.0f).arg(Three{{A, B, C}}).grid(1024).work<Pointwise>();
  EXPECT_EQ(w.elements, 1 << 20);
  EXPECT_EQ(w.bytes_read, 4 << 20);
  EXPECT_EQ(w.bytes_written, 2 << 20);
  EXPECT_EQ(w.inputs, 2);
  EXPECT_EQ(w.vector, 4);
  EXPECT_EQ(w.dtype, DType::bf16);
  EXPECT_EQ(call.key_size, 4u);  // addresses are no part of it
  EXPECT_FALSE(call.decoder_->touches_values());
}

TEST(Elementwise, UnrolledCopyTakesTypesFromTheLoader) {
  struct Cast {
    std::int8_t type;
    std::uint32_t size;
  };
  Call call(
      "void "
      "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
      "TensorIteratorBase&)"
      "::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, "
      "std::array<char*, "
      "2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned "
      "int>, "
      "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int, "
      "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() "
      "const::{lambda()#7}"
      "::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, TrivialOffsetCalculator<1, "
      "unsigned int>, "
      "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, "
      "at::native::memory::StoreWithCast<1>)");
  Decoded d = call.arg(std::int32_t{1000})
                  .arg(std::uint8_t{})
                  .arg(Two{{A, B}})
                  .arg(std::uint8_t{})
                  .arg(std::uint8_t{})
                  .arg(Cast{4, 8})
                  .arg(Cast{6, 4})
                  .decode();  // ScalarType 4: long, 6: float
  auto w = std::get<Pointwise>(d.op.work);
  EXPECT_EQ(w.bytes_read, 8000);
  EXPECT_EQ(w.bytes_written, 4000);
  EXPECT_EQ(d.semantics.kind, Semantics::Kind::copy_cast);
  ASSERT_EQ(d.semantics.inputs.size(), 1u);
  EXPECT_EQ(d.semantics.inputs[0].dtype, DType::i64);
  EXPECT_EQ(d.semantics.outputs[0].address, A);
}

TEST(Elementwise, StridedBroadcastCountsTheBroadcastOperandOnce) {
  // out[8][1024] = in[8][1024] * row[1024], floats; byte strides
  std::vector<std::byte> lambda = offsets({1024, 8}, {{4, 4, 4}, {4096, 4096, 0}}, 3);
  std::size_t data = (lambda.size() + 7) / 8 * 8;
  put(lambda, data, A), put(lambda, data + 8, B), put(lambda, data + 16, C);
  lambda.resize(648);
  const char* f =
      "at::native::BinaryFunctor<float, float, float, "
      "at::native::binary_internal::MulFunctor<float> >";
  std::string l = std::string("at::native::gpu_kernel_impl_nocast<") + f +
                  " >(at::TensorIteratorBase&, " + f + " const&)::{lambda(int)#1}";
  Call call("void at::native::elementwise_kernel<128, 2, " + l + ">(int, " + l + ")");
  auto w = call.arg(std::int32_t{8192}).raw(lambda).grid(32).work<Pointwise>();
  EXPECT_EQ(w.elements, 8192);
  EXPECT_EQ(w.bytes_read, 8192 * 4 + 1024 * 4);
  EXPECT_EQ(w.bytes_written, 8192 * 4);
  EXPECT_TRUE(w.strided);
}

TEST(Elementwise, IntegerFunctorsCarryTheirMeaning) {
  struct Add {
    std::int64_t other, alpha;
  };
  Call call(
      "void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, "
      "std::array<char*, "
      "2ul> >(int, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul>)");
  Decoded d = call.arg(std::int32_t{4}).arg(Add{7, 1}).arg(Two{{A, B}}).decode();
  EXPECT_EQ(d.semantics.kind, Semantics::Kind::binary);
  EXPECT_EQ(d.semantics.function, "add");
  EXPECT_EQ(d.semantics.scalar, 7);
  EXPECT_TRUE(call.decoder_->touches_values());

  Call fill(
      "void at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<long>, "
      "std::array<char*, 1ul> "
      ">(int, at::native::FillFunctor<long>, std::array<char*, 1ul>)");
  struct One {
    std::uint64_t p;
  };
  d = fill.arg(std::int32_t{16}).arg(std::int64_t{-3}).arg(One{A}).decode();
  EXPECT_EQ(d.semantics.kind, Semantics::Kind::fill);
  EXPECT_EQ(d.semantics.scalar, -3);
  EXPECT_EQ(std::get<Pointwise>(d.op.work).bytes_read, 0);
  EXPECT_EQ(std::get<Pointwise>(d.op.work).bytes_written, 128);
}

TEST(Reduce, FindsItsConfigurationInTheStruct) {
  // sum over the last dimension of [64][512] float, behind an ops struct of 8 bytes
  std::vector<std::byte> op(8);
  struct Config {
    std::int32_t element, inputs, outputs, step_in, step_out, ctas, in_mult[3], out_mult[2], width,
        height, threads, vectorize, out_vec;
  } c{4, 512, 64, 32, 4, 1, {1, 0, 0}, {0, 1}, 32, 4, 128, 1, 1};
  put(op, 8, c);
  std::size_t at = 8 + sizeof c;
  std::vector<std::byte> in = offsets({512}, {{4}}, 1), out = offsets({64}, {{4, 2048}}, 2);
  op.resize(at);
  op.insert(op.end(), in.begin(), in.end());
  op.insert(op.end(), out.begin(), out.end());
  op.resize((op.size() + 7) / 8 * 8);
  std::size_t pointers = op.size();
  put(op, pointers, B), put(op, pointers + 8, A);
  op.resize(pointers + 64);
  Call call(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::func_wrapper_t<float, "
      "at::native::sum_functor<float, float, "
      "float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, "
      "unsigned int, float, 4, 4> >(at::native::ReduceOp<float>)");
  auto w = call.raw(op).grid(16).block(32, 4).work<Reduction>();
  EXPECT_EQ(w.inputs, 64 * 512);
  EXPECT_EQ(w.outputs, 64);
  EXPECT_EQ(w.kind, ReduceKind::sum);
  EXPECT_TRUE(w.inner);
  EXPECT_GT(call.key_size, 0u);
}

TEST(Softmax, WarpKernelsTellRowsAndColumns) {
  Call call(
      "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, "
      "false, 32>("
      "c10::Half*, c10::Half const*, int, int, int, bool const*, int, bool)");
  auto w = call.arg(A)
               .arg(B)
               .arg(std::int32_t{96})
               .arg(std::int32_t{1024})
               .arg(std::int32_t{1000})
               .arg(std::uint64_t{})
               .arg(std::int32_t{})
               .arg(std::uint8_t{})
               .work<Softmax>();
  EXPECT_EQ(w.rows, 96);
  EXPECT_EQ(w.cols, 1000);
  EXPECT_EQ(w.in, DType::f16);
  EXPECT_FALSE(w.log);
}

TEST(Norm, LayerNormTakesRowsFromTheGrid) {
  Call call(
      "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, "
      "false>(int, "
      "float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, "
      "c10::BFloat16*)");
  call.arg(std::int32_t{768}).arg(1e-5f);
  for (int i = 0; i < 6; ++i) call.arg(A);
  auto w = call.grid(4096).block(32, 4).work<Normalization>();
  EXPECT_EQ(w.rows, 4096);
  EXPECT_EQ(w.cols, 768);
  EXPECT_EQ(w.kind, NormKind::layer);
  EXPECT_EQ(w.dtype, DType::bf16);
}

TEST(MultiTensor, CountsTheChunksOfThisLaunch) {
  for (bool wide : {false, true}) {
    int tensors = wide ? 252 : 36, blocks = wide ? 2240 : 320, index = wide ? 2 : 1;
    std::vector<std::byte> table(8u * 4 * tensors);
    std::size_t sizes = table.size();
    table.resize(sizes + 16u * tensors);
    put<std::int64_t>(table, sizes, 100000), put<std::int64_t>(table, sizes + 8, 70);
    std::size_t to_tensor = table.size();
    table.resize((to_tensor + index * blocks + 3) / 4 * 4);
    std::size_t to_chunk = table.size();
    table.resize((to_chunk + 4 * blocks + 4 + 7) / 8 * 8);
    put<std::uint8_t>(table, to_tensor + 2 * index, 1);
    put<std::int32_t>(table, to_chunk + 4, 1);
    Call call(
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
        "namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
        "namespace)::FusedAdamMathFunctor<float, 4, "
        "(at::native::ADAM_MODE)1, false>, float const*, double>(at::native::(anonymous "
        "namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
        "namespace)::FusedAdamMathFunctor<float, 4, "
        "(at::native::ADAM_MODE)1, false>, float const*, double)");
    auto w = call.raw(table)
                 .arg(std::uint8_t{})
                 .arg(A)
                 .arg(1e-3)
                 .grid(3)
                 .block(512)
                 .work<OptimizerStep>();
    EXPECT_EQ(w.elements, 100070) << wide;
    EXPECT_EQ(w.tensors, 2);
    EXPECT_EQ(w.kind, OptimizerKind::adamw);
    EXPECT_TRUE(w.fused);
    EXPECT_EQ(w.bytes_read, 100070 * 16);
    EXPECT_EQ(w.bytes_written, 100070 * 12);
  }
}

TEST(Elementwise, ArangeTellsItsTypeByTheDispatch) {
  struct Range {
    std::int64_t start, step;
    void* wrapper;
  };
  const char* f =
      "at::native::arange_cuda_out(c10::Scalar const&, c10::Scalar const&, c10::Scalar const&, "
      "at::Tensor&)"
      "::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}";
  Call call(std::string("void (anonymous namespace)::elementwise_kernel_with_index<int, ") + f +
            ">(int, " + f + ", function_traits<" + f + ">::result_type*)");
  Decoded d = call.arg(std::int32_t{10}).arg(Range{5, 2, nullptr}).arg(A).decode();
  EXPECT_EQ(std::get<Pointwise>(d.op.work).bytes_written, 80);
  EXPECT_EQ(d.semantics.kind, Semantics::Kind::arange);
  EXPECT_EQ(d.semantics.scalar, 5);
  EXPECT_EQ(d.semantics.scalar2, 2);
  ASSERT_EQ(d.semantics.outputs.size(), 1u);
  EXPECT_EQ(d.semantics.outputs[0].dtype, DType::i64);
}

TEST(Elementwise, ClampAndPowerTellTheirScalars) {
  struct Limits {
    std::int32_t which;
    std::int64_t lower, upper;
  };
  auto clamp = [](std::int32_t which) {
    const std::string f =
        "at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, "
        "c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
        "const::{lambda()#4}::operator()() const::{lambda(long)#1}";
    return Call("void at::native::vectorized_elementwise_kernel<2, " + f +
                ", std::array<char*, 2ul>, false>(int, " + f + ", std::array<char*, 2ul>)")
        .arg(std::int32_t{10})
        .arg(Limits{which, 2, 5})
        .arg(Two{{A, B}})
        .decode()
        .semantics;
  };
  EXPECT_EQ(clamp(2).function, "clamp");
  EXPECT_EQ(clamp(2).scalar, 2);
  EXPECT_EQ(clamp(2).scalar2, 5);
  EXPECT_EQ(clamp(1).function, "min");
  EXPECT_EQ(clamp(1).scalar, 2);
  auto power = [](const std::string& number) {
    const std::string f =
        "at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<long, "
        "long>(at::TensorIteratorBase&, long)::{lambda(long)#" +
        number + "}";
    return Call("void at::native::vectorized_elementwise_kernel<2, " + f +
                ", std::array<char*, 2ul>, false>(int, " + f + ", std::array<char*, 2ul>)")
        .arg(std::int32_t{10})
        .arg(std::int64_t{4})
        .arg(Two{{A, B}})
        .decode()
        .semantics;
  };
  EXPECT_EQ(power("1").function, "square");
  EXPECT_EQ(power("4").function, "pow");
  EXPECT_EQ(power("4").scalar, 4);
}

TEST(Cub, SettingUpTilesWritesTheirStatesOnly) {
  Decoded d = Call(
                  "void at_cuda_detail::cub::detail::scan::DeviceCompactInitKernel<at_cuda_detail::"
                  "cub::ScanTileState<int, true>, int*>(at_cuda_detail::cub::ScanTileState<int, "
                  "true>, int, int*)")
                  .arg(A)
                  .arg(std::int32_t{1})
                  .arg(B)
                  .decode();
  ASSERT_EQ(d.accesses.size(), 2u);
  EXPECT_LT(d.accesses[0].bytes, 512u);
}

TEST(Cub, SettingUpTilesOfAScanByKeyWritesStatesAndKeys) {
  struct Keys {
    std::uint64_t index, fields[2];
  };
  Decoded d =
      Call(
          "void at_cuda_detail::cub::detail::scan_by_key::DeviceScanByKeyInitKernel<at_cuda_"
          "detail::cub::ReduceByKeyScanTileState<unsigned int, int, true>, thrust::"
          "transform_iterator<at::native::mbtopk::BlockIdxToKey, int*>, unsigned long long>("
          "at_cuda_detail::cub::ReduceByKeyScanTileState<unsigned int, int, true>, thrust::"
          "transform_iterator<at::native::mbtopk::BlockIdxToKey, int*>, unsigned int*, "
          "unsigned long long, int)")
          .arg(A)
          .arg(Keys{~std::uint64_t{0}, {B, B}})
          .arg(B)
          .arg(std::uint64_t{1} << 40)
          .arg(std::int32_t{3})
          .decode();
  ASSERT_EQ(d.accesses.size(), 2u);
  EXPECT_EQ(d.accesses[0].address, A);
  EXPECT_EQ(d.accesses[0].bytes, 35u * 16);
  EXPECT_EQ(d.accesses[1].address, B);
  EXPECT_EQ(d.accesses[1].bytes, 24u);
}

TEST(Cub, RunLengthsAreKnownOfBothCudaMajors) {
  for (const char* ones : {"thrust::constant_iterator<long, long, thrust::use_default>",
                           "at_cuda_detail::cub::ConstantInputIterator<long, int>"}) {
    const std::string iterator(ones);
    Decoded d = Call(("void at_cuda_detail::cub::DeviceReduceByKeyKernel<policy_hub<long, long>::"
                      "Policy900, long const*, long*, " +
                      iterator +
                      ", long*, long*, at_cuda_detail::cub::ReduceByKeyScanTileState<long, int, "
                      "true>, cuda::std::equal_to<void>, cuda::std::plus<void>, int, long>(long "
                      "const*, long*, " +
                      iterator +
                      ", long*, long*, at_cuda_detail::cub::ReduceByKeyScanTileState<long, int, "
                      "true>, int, cuda::std::equal_to<void>, cuda::std::plus<void>, int)")
                         .c_str())
                    .arg(A)
                    .arg(B)
                    .arg(std::array<std::int32_t, 4>{1})
                    .arg(C)
                    .arg(C)
                    .arg(A)
                    .arg(std::int32_t{0})
                    .arg(std::int8_t{})
                    .arg(std::int8_t{})
                    .arg(std::int32_t{40})
                    .decode();
    ASSERT_EQ(d.semantics.kind, Semantics::Kind::unique) << ones;
    EXPECT_EQ(d.semantics.outputs.size(), 3u);
  }
}

TEST(Norm, GroupNormGradientsChannelsLastCountEachImageOnce) {
  // 192 images of 256 channels of 56 × 56: a block per image and channel, or per sixteen channels.
  for (bool fallback : {true, false}) {
    Call call(
        fallback
            ? "void at::native::(anonymous namespace)::"
              "ComputeInternalGradientsChannelsLastFallbackCUDAKernel<float>(long, long, float "
              "const*, float const*, float*, float*)"
            : "void at::native::(anonymous namespace)::"
              "ComputeInternalGradientsChannelsLastCUDAKernel<16, float>(long, long, float "
              "const*, float const*, float*, float*)");
    auto w = call.arg(std::int64_t{256})
                 .arg(std::int64_t{3136})
                 .arg(A)
                 .arg(B)
                 .arg(C)
                 .arg(C)
                 .grid(fallback ? 192 * 256 : 192 * 16)
                 .work<Reduction>();
    EXPECT_EQ(w.inputs, 2 * 192 * 256 * 3136);
    EXPECT_EQ(w.outputs, 2 * 192 * 256);
  }
}

TEST(Unknown, IsSaidToBe) {
  Call call("my_extension::mystery_kernel(float*, int)");
  Decoded d = call.arg(A).arg(std::int32_t{5}).decode();
  EXPECT_FALSE(d.recognised);
  EXPECT_TRUE(std::holds_alternative<OtherKernel>(d.op.work));
}

Call& compiled(Call& call, std::string_view text) {
  return call.ptx(text).arg(A).arg(B).arg(C).arg(std::int32_t{7}).grid(4096).block(512);
}

TEST(Source, AKernelWithoutLoopsTouchesWhatItsSourceSpells) {
  const char* text =
      "// maya-nvrtc\n// fused_add_tanh touches 0 1 0 __nv_bfloat16;1 2 0 float;2 0 1 "
      "__nv_bfloat16;\n.visible .entry fused_add_tanh(\n";
  const std::int64_t threads = 4096 * 512;
  Call whole("fused_add_tanh"), row("fused_add_tanh");
  const auto w = compiled(whole, text).work<Pointwise>();
  EXPECT_EQ(w.elements, threads);
  EXPECT_EQ(w.bytes_read, threads * (2 + 2 * 4));
  EXPECT_EQ(w.bytes_written, threads * 2);
  EXPECT_EQ(w.dtype, DType::bf16);
  // A row that is added to all: no more than there is.
  row.extents([](std::uint64_t p) -> std::uint64_t { return p == B ? 4096 : 1 << 30; });
  EXPECT_EQ(compiled(row, text).work<Pointwise>().bytes_read, threads * 2 + 4096);
  // A type that is the source's own, or no source at all.
  for (const char* unknown :
       {"// maya-nvrtc\n// fused_add_tanh touches 0 1 1 Mine;\n", "// maya-nvrtc\n",
        "// maya-nvrtc\n// fused_add_tanh touches 0 x 1 float;\n"}) {
    Call call("fused_add_tanh");
    EXPECT_FALSE(compiled(call, unknown).decode().recognised) << unknown;
  }
}

TEST(Robustness, MissingArgumentsAndGarbageDoNotCrash) {
  // Every kernel of the wheel without arguments, with zeros, and with noise.
  std::ifstream file(MAYA_SOURCE_DIR "/src/decode/testdata/torch_kernels.txt");
  ASSERT_TRUE(file);
  std::string line;
  std::uint32_t noise = 12345;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    int count = 0;
    Kernel kernel;
    fields >> count >> kernel.mangled;
    std::vector<std::vector<std::byte>> storage;
    std::string part;
    while (fields >> part) {
      std::size_t colon = part.find(':');
      kernel.parameter_offsets.push_back(static_cast<std::uint16_t>(std::stoi(part)));
      kernel.parameter_sizes.push_back(
          static_cast<std::uint16_t>(std::stoi(part.substr(colon + 1))));
      storage.emplace_back(kernel.parameter_sizes.back());
    }
    std::vector<void*> pointers;
    for (auto& s : storage) pointers.push_back(s.data());
    auto decoder = prepare(kernel);
    Launch launch{&kernel, {{3, 2, 1}, {32, 4, 1}}, nullptr, nullptr, nullptr};
    std::byte key[256];
    EXPECT_LE(decoder->key(launch, key, sizeof key), sizeof key);
    decoder->decode(launch);
    launch.arguments = pointers.data();
    EXPECT_LE(decoder->key(launch, key, sizeof key), sizeof key);
    decoder->decode(launch);
    for (int round = 0; round < 4; ++round) {
      for (auto& s : storage)
        for (auto& b : s)
          b = static_cast<std::byte>((noise = noise * 1664525u + 1013904223u) >>
                                     (round < 2 ? 24 : 30));
      EXPECT_LE(decoder->key(launch, key, sizeof key), sizeof key);
      decoder->decode(launch);
    }
  }
}

TEST(Corpus, RecognisesTheKernelsOfTheWheel) {
  std::ifstream file(MAYA_SOURCE_DIR "/src/decode/testdata/torch_kernels.txt");
  ASSERT_TRUE(file);
  std::string line;
  double all = 0, recognised = 0;
  std::map<std::string, double> kinds;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    int count = 0;
    Kernel kernel;
    fields >> count >> kernel.mangled;
    auto decoder = prepare(kernel);
    Launch launch{&kernel, {{3, 2, 1}, {32, 4, 1}}, nullptr, nullptr, nullptr};
    Decoded d = decoder->decode(launch);
    all += count;
    if (d.recognised) recognised += count;
    kinds[std::string(kind_name(d.op.work))] += count;
  }
  for (const auto& [kind, n] : kinds) RecordProperty(kind, static_cast<int>(n));
  RecordProperty("names", static_cast<int>(all));
  EXPECT_GT(all, 20000);
  EXPECT_GE(recognised / all, 0.97);
  // Not everything may be called pointwise: the families must be there.
  for (const char* kind :
       {"attention", "reduction", "softmax", "normalization", "optimizer_step", "gather", "scatter",
        "sort", "scan", "pool", "random", "cross_entropy", "gemm", "convolution"})
    EXPECT_GT(kinds[kind], 0) << kind;
}

}  // namespace
}  // namespace maya::decode
