// The Triton kernels in which vLLM and SGLang compute one product of all experts of a layer:
// fused_moe_kernel and, for weights of 4 or 8 bits with scales by groups,
// fused_moe_kernel_gptq_awq.
//
// Both go through blocks of rows, each of one expert. Arguments are told by the names in the TTIR
// (triton_source.h): N, K and stride_be, stride_bn of the weights; num_valid_tokens, which is
// tokens · experts per token in both products; sorted_token_ids_ptr unless each row is a block.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "decode/experts.h"
#include "decode/serving_families.h"
#include "decode/triton_source.h"

namespace maya::decode {
namespace {

// The rows of a token's experts read the same row: in their addresses, numbers of rows are divided
// by how many there are, a constant of the code. In the product back nothing is left to divide.
// Scales by blocks divide too, elsewhere.
std::int64_t divisor_of_rows(std::string_view text) {
  constexpr std::string_view result = "    %a_ptrs", divide = " = arith.divsi %";
  for (std::size_t at = text.find(result); at != text.npos; at = text.find(result, at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const std::size_t comma = line.find(", %"), colon = line.find(" : tensor<");
    if (!contains(line, divide) || comma == line.npos || colon == line.npos || colon < comma)
      continue;
    const std::string constant =
        std::string(line.substr(comma + 2, colon - comma - 2)) + " = arith.constant dense<";
    const std::size_t value = text.find(constant);
    if (value == text.npos) continue;
    const auto number = std::atoll(std::string(text.substr(value + constant.size(), 12)).c_str());
    if (number > 1) return number;
  }
  return 1;
}

// Rows of a block: of the first tensor of addresses that the list of rows is read with.
std::int64_t rows_of_block(std::string_view text) {
  constexpr std::string_view mark = "tt.splat %sorted_token_ids_ptr : !tt.ptr<i32> -> tensor<";
  const std::size_t at = text.find(mark);
  return at == text.npos ? 1 : std::atoll(std::string(text.substr(at + mark.size(), 8)).c_str());
}

class FusedExperts : public Decoder {
 public:
  TritonSource source;
  std::int64_t top{1}, block{1};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    const Router router = last_router();
    return source.key(a, {hit(a), local(a), router.experts, router.top}, out, capacity);
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    Gemm work;
    if (!sizes(a, work)) {
      d.recognised = false;
      d.op.work = OtherKernel{};
      return d;
    }
    // Also rows of experts on other ranks are written: zeros.
    write(d, source.pointer(a, "c_ptr"),
          source.integer(a, "num_valid_tokens") * work.n * whole_bytes(work.d));
    d.op.work = work;
    return d;
  }

  std::vector<bool> read_only() const override { return source.none_of({"c_ptr"}); }

 private:
  bool sizes(const Arguments& a, Gemm& work) const {
    const DType tokens = source.type("a_ptr"), weights = source.type("b_ptr");
    const std::int64_t row = source.integer(a, "stride_bn"),
                       expert = source.integer(a, "stride_be");
    const std::int64_t width = source.integer(a, "stride_am");
    work.a = work.compute = tokens, work.b = weights, work.d = source.type("c_ptr");
    if (!source.has("N") || !source.has("K")) {  // constants of the code
      if (row <= 1 || expert % row != 0) return false;
      work.n = expert / row, work.k = width;
      if (width == 2 * row)
        work.b = DType::f4;  // two in a byte
      else if (width != row)
        return false;
    } else {
      work.n = source.integer(a, "N"), work.k = source.integer(a, "K");
      if (expert < work.n * work.k) return false;
    }
    const std::int64_t rows = source.integer(a, "num_valid_tokens");
    if (work.n < 1 || work.k < 1 || rows < 1) return false;
    Dealt dealt;
    dealt.rows = rows;
    dealt.local = local(a);
    if (dealt.local < 1) return false;
    dealt.top = top > 1 ? top : 0;
    dealt.hit = hit(a);
    // Scales along k: one for each `stride` of a row of them.
    const std::int64_t scales = source.integer(a, "stride_bsn");
    if (source.has("b_scale_ptr") && scales > 1 && work.k % scales == 0)
      work.scale_block = work.k / scales;
    if (top > 1) note_router({0, top});
    work.part = top > 1                 ? ExpertsPart::first
                : last_router().top > 1 ? ExpertsPart::second
                                        : ExpertsPart::unknown;
    deal(work, dealt);
    return true;
  }

  std::int64_t local(const Arguments& a) const {
    return experts_behind(
        a.launch(), source.pointer(a, "b_ptr"),
        static_cast<double>(source.integer(a, "stride_be")) * whole_bytes(source.type("b_ptr")));
  }

  // Experts that blocks of this launch belong to, where the lists are known; else 0.
  std::int64_t hit(const Arguments& a) const {
    const Launch& launch = a.launch();
    if (launch.known == nullptr) return 0;
    const std::uint64_t list = source.pointer(a, "expert_ids_ptr");
    std::int64_t blocks = source.integer(a, "num_valid_tokens");
    if (source.has("sorted_token_ids_ptr")) {
      std::int32_t padded = 0;
      const void* at = launch.known(source.pointer(a, "num_tokens_post_padded_ptr"), 4);
      if (at == nullptr || block < 1) return 0;
      std::memcpy(&padded, at, 4);
      blocks = padded / block;
    }
    constexpr std::int64_t most = 1 << 16;
    if (blocks < 1 || blocks > most) return 0;
    const auto* experts = static_cast<const std::int32_t*>(
        launch.known(list, static_cast<std::uint64_t>(blocks) * 4));
    if (experts == nullptr) return 0;
    std::set<std::int32_t> different(experts, experts + blocks);
    different.erase(-1);  // of other ranks
    return static_cast<std::int64_t>(different.size());
  }
};

}  // namespace

Made prepare_fused_experts(const Kernel& kernel, const Name& name) {
  if (kernel.mangled != "fused_moe_kernel" && kernel.mangled != "fused_moe_kernel_gptq_awq")
    return nullptr;
  auto source = triton_source(kernel);
  auto lacks = [&](std::string_view needed) { return !source->has(needed); };
  constexpr std::string_view all[] = {"a_ptr", "b_ptr", "c_ptr", "expert_ids_ptr", "stride_be"};
  // Read off its code it would seem to be next to no work.
  if (!source || std::any_of(std::begin(all), std::end(all), lacks))
    return prepare_unknown(kernel, name);
  auto d = std::make_unique<FusedExperts>();
  d->top = divisor_of_rows(source->text), d->block = rows_of_block(source->text);
  d->source = *std::move(source);
  d->source.text.clear();
  return d;
}

}  // namespace maya::decode
