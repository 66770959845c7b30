// The Triton kernels of OpenAI's triton_kernels, in which vLLM and SGLang compute experts of
// gpt-oss: _matmul_ogs, whose full name ends in its types, the sizes of its blocks and what is
// fused, and _topk_forward, which chooses the experts.
#include <algorithm>
#include <cstdlib>

#include "decode/experts.h"
#include "decode/serving_families.h"
#include "decode/traffic.h"
#include "decode/triton_source.h"

namespace maya::decode {
namespace {

class MatmulOgs : public Decoder {
 public:
  TritonSource source;

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    const Router router = last_router();
    const std::int64_t experts = local(a);
    return source.key(a, {hit(a, experts), experts, router.experts, router.top}, out, capacity);
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    Gemm work;
    const DType weights = source.type("W");
    work.a = work.compute = source.type("X"), work.d = source.type("Y");
    // With scales by blocks of 32: two numbers in a byte, or 8-bit floats.
    work.b = weights == DType::i8 ? DType::f4 : weights;
    constexpr std::int64_t block = 32;
    if (source.has("WMxScale")) work.scale_block = block;
    work.n = source.integer(a, "N"), work.k = source.integer(a, "K");
    Dealt dealt;
    dealt.rows = rows(a);
    dealt.local = local(a);
    dealt.hit = hit(a, dealt.local);
    if (work.n < 1 || work.k < 1 || dealt.rows < 1 || dealt.local < 1) {
      d.recognised = false;
      d.op.work = OtherKernel{};
      return d;
    }
    work.part = source.has("GatherIndx")      ? ExpertsPart::first
                : source.has("WriteBackIndx") ? ExpertsPart::second
                                              : ExpertsPart::unknown;
    deal(work, dealt);
    write(d, source.pointer(a, "YPtr"), dealt.rows * work.n * whole_bytes(work.d));
    d.op.work = work;
    return d;
  }

  std::vector<bool> read_only() const override { return source.none_of({"Y", "YPtr"}); }

 private:
  // Of a tensor of one batch: from one batch to the next it is as far as the rows are long.
  std::int64_t rows(const Arguments& a) const {
    if (source.has("num_idxs")) return source.integer(a, "num_idxs");
    const std::int64_t row = source.integer(a, "stride_y_m");
    return row > 0 ? source.integer(a, "stride_y_z") / row : 0;
  }
  std::int64_t local(const Arguments& a) const {
    return experts_behind(
        a.launch(), source.pointer(a, "W"),
        static_cast<double>(source.integer(a, "stride_w_e")) * whole_bytes(source.type("W")));
  }
  // Experts that get a row, where the counts are known; else 0.
  std::int64_t hit(const Arguments& a, std::int64_t experts) const {
    constexpr std::int64_t most = 1 << 16;
    if (a.launch().known == nullptr || experts < 1 || experts > most) return 0;
    const auto* counts = static_cast<const std::int32_t*>(
        a.launch().known(source.pointer(a, "ExptHist"), static_cast<std::uint64_t>(experts) * 4));
    if (counts == nullptr) return 0;
    return experts - std::count(counts, counts + experts, 0);
  }
};

// _topk_forward(X, …, PeerYvs, PeerYis, stride_ym, …, n_rows, n_expts_tot, …)
Made choice(const Kernel& kernel, TritonSource source) {
  std::vector<KeyPart> key;
  for (std::size_t i = 0; i < source.parameters.size(); ++i)
    if (!source.parameters[i].pointer)
      key.push_back({static_cast<std::uint8_t>(i), 0, kernel.parameter_sizes[i]});
  return make(key, [source = std::move(source)](const Arguments& a, Decoded& d) {
    const std::int64_t experts = source.integer(a, "n_expts_tot");
    const std::int64_t top = source.integer(a, "stride_ym"), rows = source.integer(a, "n_rows");
    if (top >= 1 && top <= experts) note_router({experts, top});
    const DType t = source.type("X");
    d.op.work = traffic(rows * experts, rows * experts * whole_bytes(t), rows * top * 8, t, 8);
    // Scores, numbers and a bit for each expert, in columns of whole blocks of rows.
    constexpr std::int64_t word = 32, block = 32;
    write(d, source.pointer(a, "PeerYvs"), rows * top * whole_bytes(source.type("PeerYvs")));
    write(d, source.pointer(a, "PeerYis"), rows * top * whole_bytes(source.type("PeerYis")));
    write(d, source.pointer(a, "PeerBits"),
          ceil_div(rows, block) * block * ceil_div(experts, word) * 4);
  });
}

}  // namespace

Made prepare_matmul_ogs(const Kernel& kernel, const Name& name) {
  const bool product =
      starts_with(kernel.mangled, "_matmul_ogs") || starts_with(kernel.mangled, "_p_matmul_ogs");
  const bool chooses = starts_with(kernel.mangled, "_topk_forward");
  if (!product && !chooses) return nullptr;
  auto source = triton_source(kernel);
  if (chooses)
    return source && source->has("n_expts_tot") && source->has("n_rows")
               ? choice(kernel, *std::move(source))
               : nullptr;
  // Without experts its code tells all; with them it would seem to be next to no work.
  if (source && !source->has("ExptHist")) return nullptr;
  if (!source || !source->has("W") || !source->has("X") || !source->has("YPtr") ||
      !source->has("stride_w_e"))
    return prepare_unknown(kernel, name);
  auto d = std::make_unique<MatmulOgs>();
  d->source = *std::move(source);
  d->source.text.clear();
  return d;
}

}  // namespace maya::decode
