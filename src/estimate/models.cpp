#include "estimate/models.h"

#include <algorithm>
#include <cmath>

#include "estimate/experts_product.h"
#include "estimate/features.h"
#include "estimate/power.h"

namespace maya::estimate {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

// Tensor cores read 16-byte vectors: a leading dimension that is no multiple of eight 16-bit
// elements forces narrower loads, an odd one the slowest kernels.
double alignment_rate(const Gemm& w, const Chip& chip) {
  if (!chip.tensor(w.compute)) return 1;
  const bool single = w.batch <= 1;
  auto worst = [single](std::int64_t contiguous, double size) {
    double bytes = static_cast<double>(contiguous) * size;
    if (std::fmod(bytes, 16) == 0) return 1.0;
    if (std::fmod(bytes, 8) == 0) return 0.85;
    if (std::fmod(bytes, 4) == 0) return 0.7;
    // Odd rows of 16-bit numbers: the three products of nanoGPT's head became 2.8 times as fast
    // when its vocabulary went from 50257 to 50304 (a quarter of the step on A100, its commit
    // 77e7e04c). Small products in batches (attention over 197 places) lose less: ViT on an RTX
    // 3090.
    return single ? 0.36 : 0.5;
  };
  std::int64_t a = w.lda > 0 ? w.lda : (w.transpose_a ? w.k : w.m);
  std::int64_t b = w.ldb > 0 ? w.ldb : (w.transpose_b ? w.n : w.k);
  std::int64_t d = w.ldd > 0 ? w.ldd : w.m;
  const double operands = std::min(worst(a, bytes(w.a)), worst(b, bytes(w.b)));
  return single ? std::min(operands, worst(d, bytes(w.d))) : operands;
}

// The arithmetic is the chip's, whatever chip the recording was made for: where that had no units
// for the operands, it says f32.
DType arithmetic(const Chip& chip, DType operands, DType recorded) {
  const bool resolved = recorded == DType::f32 && operands != DType::f32 && chip.tensor(operands);
  return resolved && bytes(operands) <= 2 ? operands : recorded;
}

}  // namespace

Confidence read_confidence(const Section& section) {
  Confidence c;
  if (const auto* interval = section.list("interval"); interval && interval->size() >= 2) {
    c.low = std::clamp((*interval)[0], 0.01, 1.0);
    c.high = std::max(1.0, (*interval)[1]);
    c.short_low = 0.85 * c.low, c.short_high = 1.15 * c.high;
    if (interval->size() >= 4) {
      c.short_low = std::clamp((*interval)[2], 0.01, 1.0);
      c.short_high = std::max(1.0, (*interval)[3]);
    }
  }
  c.fitted = section.fitted();
  return c;
}

GemmShape gemm_shape(const Chip& chip, const Gemm& w) {
  GemmShape s;
  s.m = std::max(1.0, d(w.m)), s.n = std::max(1.0, d(w.n)), s.k = std::max(1.0, d(w.k));
  s.batch = std::max(1.0, d(w.batch));
  s.bytes_a = bytes(w.a), s.bytes_b = bytes(w.b), s.bytes_d = bytes(w.d);
  s.compute = w.compute;
  s.transpose_a = w.transpose_a, s.transpose_b = w.transpose_b;
  s.accumulate = w.accumulate;
  s.groups = std::max(1.0, d(w.groups));
  s.aligned = alignment_rate(w, chip);
  return s;
}

Result<Models> Models::make(const Chip& chip, const ModelFile& file, LearnedModels learned) {
  Models m;
  m.chip_ = chip;
  m.learned_ = std::move(learned);
  m.quantization_ = Quantization::make(chip, file);
  PowerParams power;
  const Section board = file.section("chip", chip);
  PowerParams::each(power,
                    [&](std::string_view key, double& value) { value = board.get(key, value); });
  limit_power(m.chip_, power);
  Status status;
  auto load = [&](auto& model, std::size_t features,
                  std::initializer_list<std::string_view> families) {
    // Later families refine earlier ones: "memory", then "memory.softmax_forward".
    using P = std::remove_cvref_t<decltype(model.params)>;
    for (std::string_view family : families) {
      Section section = file.section(family, chip);
      P::each(model.params,
              [&](std::string_view key, double& value) { value = section.get(key, value); });
      if (section.list("interval") || section.fitted()) model.confidence = read_confidence(section);
      if (const auto* trees = section.list("trees"); trees && !trees->empty()) {
        const auto* range = section.list("range");
        auto parsed = Trees::parse(*trees, features, range ? *range : std::vector<double>{});
        if (parsed)
          model.correction = *std::move(parsed);
        else
          status = Error{std::string(family) + ": " + parsed.error().message};
      }
    }
  };
  const std::size_t gemm = GemmFeatures{}.size(), conv = ConvFeatures{}.size();
  load(m.gemm_tensor_, gemm, {"gemm.tensor"});
  load(m.gemm_plain_, gemm, {"gemm.f32"});
  load(m.gemm_batched_, gemm, {"gemm.f32", "gemm.f32.batched"});
  load(m.conv_tensor_, conv, {"conv.tensor"});
  load(m.conv_tensor_last_, conv, {"conv.tensor", "conv.tensor.last"});
  load(m.conv_plain_, conv, {"conv.f32"});
  constexpr std::string_view kernels[] = {"attention.flash2", "attention.flash3", "attention.cudnn",
                                          "attention.memory_efficient", "attention.other"};
  for (std::size_t i = 0; i < m.attention_.size(); ++i)
    load(m.attention_[i], 0, {"attention", kernels[i]});
  for (std::size_t i = 0; i < m.memory_.size(); ++i) {
    std::string family = "memory." + std::string(name(static_cast<MemoryFamily>(i)));
    load(m.memory_[i], MemoryFeatures{}.size(), {"memory", family});
  }
  m.conv_other_ = read_confidence(file.section("conv.f32.other", chip));
  const Section experts = file.section("experts", chip);
  m.experts_ = read_confidence(experts);
  m.experts_efficiency_ = std::clamp(experts.get("efficiency", 1), 0.1, 1.0);
  m.carried_products_ = read_confidence(file.section("carried.products", chip));
  m.carried_attention_ = read_confidence(file.section("carried.attention", chip));
  load(m.transfer_, 0, {"transfer"});
  load(m.spills_, 0, {"spills"});
  if (!status) return status.error();
  return m;
}

void Models::calibrate(const Calibration& calibration) {
  auto apply = [&](Confidence& c, std::string_view family) {
    const auto* scale = calibration.scale(family);
    if (!scale) return;
    c.scale = scale->factor;
    c.calibrated = true;
    c.low = c.short_low = std::min(1.0, scale->low);
    c.high = c.short_high = std::max(1.0, scale->high);
  };
  apply(gemm_tensor_.confidence, "gemm.tensor");
  apply(gemm_thin_, "gemm.tensor");
  apply(learned_products_, "gemm.tensor");
  apply(learned_attention_, "attention");
  apply(gemm_plain_.confidence, "gemm.f32");
  apply(gemm_batched_.confidence, "gemm.f32");
  apply(conv_tensor_.confidence, "conv.tensor");
  apply(conv_tensor_last_.confidence, "conv.tensor");
  apply(conv_plain_.confidence, "conv.f32");
  apply(conv_other_, "conv.f32");
  for (auto& model : attention_) apply(model.confidence, "attention");
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    apply(memory_[i].confidence, "memory");
    apply(memory_[i].confidence, "memory." + std::string(name(static_cast<MemoryFamily>(i))));
  }
  apply(transfer_.confidence, "transfer");
}

Models::Raw Models::gemm(const Gemm& w) const {
  const auto& model = chip_.tensor(w.compute) ? gemm_tensor_
                      : w.batch > 1           ? gemm_batched_
                                              : gemm_plain_;
  const GemmShape shape = gemm_shape(chip_, w);
  const GemmDetail detail = gemm_time(chip_, shape, model.params);
  double ns = detail.ns;
  if (detail.thin) return {ns, &gemm_thin_};
  if (!model.correction.empty()) {
    ns *= model.correction.factor(gemm_features(chip_, shape, detail));
    ns = std::max(ns, flops(w) / chip_.rate(w.compute));
  }
  return {ns, &model.confidence};
}

Models::Raw Models::experts(const Op& op, const Gemm& work) const {
  Question question;
  if (!ask(chip_, op, question)) return gemm(work);
  return {question.base_ns / experts_efficiency_, &experts_};
}

Estimate Models::experts_product(const Op& op, const Gemm& work) const {
  const ExpertsLayer layer = layer_of(op, work);
  Estimate e = evaluate(layer.layer);
  double around = 0;
  for (const Op& pass : layer.around) around += evaluate(pass).ns;
  // The products are most of any layer; and nothing is faster than its weights can be read.
  constexpr double most_around = 0.5;
  const double weights = d(work.groups) * d(work.n) * d(work.k) * bytes(work.b);
  const double ns = std::max({layer.share * std::max(e.ns - around, (1 - most_around) * e.ns),
                              weights / chip_.dram, flops(work) / chip_.rate(work.compute)});
  const double factor = e.ns > 0 ? ns / e.ns : 1;
  e.ns = ns, e.low_ns *= factor, e.high_ns *= factor;
  return e;
}

Models::Raw Models::conv(const Convolution& work) const {
  Convolution w = work;
  const bool tensor = chip_.tensor(w.compute);
  // Without arithmetic of its own the library converts what comes in 16 bits and computes in f32.
  if (!tensor && bytes(w.dtype) < 4) w.dtype = w.compute = DType::f32;
  const auto& of_layout = w.layout == Layout::channels_last ? conv_tensor_last_ : conv_tensor_;
  const auto& model = tensor ? of_layout : conv_plain_;
  const auto& gemm = tensor ? gemm_tensor_ : gemm_batched_;
  const auto& memory = memory_[static_cast<std::size_t>(MemoryFamily::pointwise)];
  const ConvDetail detail = conv_time(chip_, w, model.params, gemm.params, memory.params);
  double ns = detail.ns;
  if (tensor && w.layout == Layout::channels_first && !depthwise(w) &&
      (w.groups > 1 || std::min(w.c, w.k) < 32)) {
    // Mostly padding in tensor cores: plain arithmetic may be faster.
    w.compute = DType::f32;
    const auto& plain = gemm_batched_.params;
    ns = std::min(ns, conv_time(chip_, w, conv_plain_.params, plain, memory.params).ns);
  }
  if (model.correction.empty()) return {ns, &model.confidence};
  // The correction has seen plain 3×3 kernels forward, and speaks of those only.
  if (w.direction != Direction::forward || w.kh != 3 || w.kw != 3 || w.kd != 1 || w.stride_h != 1 ||
      w.stride_w != 1 || w.dilation_h != 1 || w.groups != 1)
    return {ns, tensor ? &model.confidence : &conv_other_};
  return {ns * model.correction.factor(conv_features(chip_, w, detail)), &model.confidence};
}

Models::Raw Models::attention(const Attention& w) const {
  const auto& model = attention_[std::min<std::size_t>(static_cast<std::size_t>(w.kernel), 4)];
  return {attention_time(chip_, w, model.params), &model.confidence};
}

// What FlashAttention 2 takes for tokens beside prompts: it gives each head of each sequence a tile
// of rows then and walks all keys with it, as if the tile were full (alone, tokens of heads that
// share keys are rows of one tile). So many tiles of prompts as long as the contexts cost the same.
double Models::tiles_of_tokens(const Op& op, const Attention& w) const {
  constexpr double rows = 64;  // kBlockM of its kernel for paged keys
  const double keys = std::max(2 * rows, d(w.short_k));
  const double tiles = std::ceil(d(w.short_q) / rows);
  const double prompts = d(w.short_batch) * tiles * 2 * rows / keys;  // half of a square is masked
  Op square = op;
  auto& a = std::get<Attention>(square.work);
  a = w.prompts();
  a.causal = true;
  a.batch = static_cast<std::int64_t>(std::ceil(prompts));
  a.seq_q = a.seq_k = static_cast<std::int64_t>(keys);
  const double work = evaluate(square).ns * prompts / d(a.batch);
  // Blocks of one head come before those of the next: the keys are still in the L2, or not.
  const double kv_heads = d(std::max<std::int64_t>(1, w.kv_heads));
  const double moved = bytes_moved(w.tokens());
  const double times = moved / kv_heads > chip_.l2_bytes ? d(w.heads) / kv_heads : 1;
  return std::max(work, moved * times / chip_.dram);
}

Estimate Models::mixed(const Op& op, const Attention& w) const {
  auto part = [&](const Attention& work) {
    Op one = op;
    one.work = work;
    return evaluate(one);
  };
  Estimate e = part(w.prompts());
  Attention tokens = w.tokens(), least = tokens;
  least.batch = 1, least.seq_k = least.seq_q + 16;
  // The launch is paid once.
  double more = std::max(0.0, part(tokens).ns - part(least).ns);
  if (w.kernel == AttentionKernel::flash2) more = std::max(more, tiles_of_tokens(op, w));
  const double factor = e.ns > 0 ? 1 + more / e.ns : 1;
  e.ns *= factor, e.low_ns *= factor, e.high_ns *= factor;
  return e;
}

// Per layer one large product over all steps for the inputs, then a chain of small ones, a step
// after the other, that cuDNN keeps resident.
Models::Raw Models::rnn(const Rnn& w) const {
  double ns = 0;
  const double seq = d(w.seq);
  for (int layer = 0; layer < w.layers; ++layer) {
    Gemm input;
    input.m = w.gates * w.hidden;
    input.n = w.seq * w.batch;
    input.k = layer == 0 ? w.input : w.hidden * w.directions;
    input.a = input.b = input.d = w.dtype == DType::tf32 ? DType::f32 : w.dtype;
    input.compute = w.dtype;
    Gemm step = input;
    step.n = w.batch, step.k = w.hidden;
    const double chain = gemm(step).ns;
    ns += w.directions * (gemm(input).ns + seq * chain);
  }
  if (w.direction != Direction::forward) ns *= 2;
  return {ns, &unknown_};
}

// Panels of a factorization depend on each other: a fraction of the GEMM rate and a latency per
// panel of 32 columns; small batched ones run side by side.
Models::Raw Models::solver(const Solver& w) const {
  const double least = d(std::min(w.m, w.n));
  const double rate =
      chip_.rate(w.dtype == DType::f64 || w.dtype == DType::c128 ? DType::f64 : DType::f32);
  const double work = flops(w) / (0.35 * rate);
  const double side_by_side = std::ceil(d(w.batch) / chip_.sms);
  const double panels = std::ceil(least / 32) * 12000 * (least > 64 ? 1 : side_by_side);
  return {5000 + work + panels + bytes_moved(w) / (0.7 * chip_.dram), &unknown_};
}

Models::Raw Models::triton(const Op& op, const TritonKernel& w) const {
  const auto& model = memory_[static_cast<std::size_t>(MemoryFamily::triton)];
  MemoryShape s;
  s.read = d(w.bytes_read), s.written = d(w.bytes_written);
  const double ns = memory_time(chip_, s, model.params);
  const double tensor = d(w.tensor_flops) / (0.6 * chip_.rate(w.dtype));
  const double plain = d(w.flops) / (0.5 * chip_.rate(DType::f32));
  return {std::max(ns, model.params.floor_ns + std::max(tensor, plain)) +
              spill_time(chip_, op, w, spills_.params),
          w.exact && w.loops == Loops::counted ? &model.confidence : &unknown_};
}

Models::Raw Models::raw(const Op& op) const {
  if (const auto* w = std::get_if<Gemm>(&op.work))
    return scheme_of(op).experts ? experts(op, *w) : gemm(*w);
  if (const auto* w = std::get_if<Convolution>(&op.work)) return conv(*w);
  if (const auto* w = std::get_if<Attention>(&op.work)) return attention(*w);
  if (const auto* w = std::get_if<Rnn>(&op.work)) return rnn(*w);
  if (const auto* w = std::get_if<Solver>(&op.work)) return solver(*w);
  if (const auto* w = std::get_if<TritonKernel>(&op.work)) return triton(op, *w);
  if (const auto* w = std::get_if<Copy>(&op.work); w && w->direction != CopyDirection::device)
    return {transfer_time(chip_, *w, transfer_.params), &transfer_.confidence};
  if (auto memory = memory_op(op)) {
    const auto& model = memory_[static_cast<std::size_t>(memory->family)];
    double ns = memory_time(chip_, memory->shape, model.params);
    if (!model.correction.empty())
      ns *= model.correction.factor(memory_features(chip_, memory->shape));
    return {ns, &model.confidence};
  }
  return {0, nullptr};
}

bool Models::learned(const Op& op, Estimate& out) const {
  Question question;
  if (!ask(chip_, op, question)) return false;
  const LearnedModel* model = learned_.find(question.family);
  if (model == nullptr || !model->made_for(question)) return false;
  const auto* gemm = std::get_if<Gemm>(&op.work);
  const auto* attention = std::get_if<Attention>(&op.work);
  // Nobody measured batches of products, nor such that only stream an operand.
  constexpr std::int64_t thin = 16;
  const Scheme scheme = scheme_of(op);
  if (gemm && !scheme.experts && (gemm->batch > 1 || gemm->m < thin || gemm->k < thin))
    return false;
  // A recorded kernel of another kind than what was measured here keeps its own model; so does one
  // that somebody names.
  if (attention && scheme.library.empty() && !model->covers(enum_name(attention->kernel)))
    return false;
  std::string_view library = scheme.library;
  if (gemm && scheme.recorded) library = Quantization::library_of(question.family, op.name);
  LearnedAnswer a = model->answer(question, library);
  if (gemm && scheme.recorded)
    a = quantization_.without(question.family, model->answering(library), chip_, *gemm, a);
  // The tables have heads of 64, 128 and 256. Between them a forest may jump to what it learned of
  // another kernel, but none is faster than with smaller heads.
  if (attention && attention->head_dim == attention->head_dim_v && attention->head_dim > 64 &&
      attention->head_dim != 128 && attention->head_dim != 256) {
    Op smaller = op;
    auto& w = std::get<Attention>(smaller.work);
    w.head_dim = w.head_dim_v = attention->head_dim > 256   ? 256
                                : attention->head_dim > 128 ? 128
                                                            : 64;
    Question other;
    if (ask(chip_, smaller, other)) {
      const LearnedAnswer least = model->answer(other, scheme.library);
      if (least.ns > a.ns) a = least;
    }
  }
  // Rows that tensor cores cannot read in whole vectors; all that was measured can be.
  const double slower = gemm && !scheme.experts ? 1 / alignment_rate(*gemm, chip_) : 1;
  const Confidence& own = attention ? learned_attention_ : learned_products_;
  const double scale = own.scale * slower;
  out.ns = a.ns * scale;
  if (own.calibrated)
    out.low_ns = out.ns * own.low, out.high_ns = out.ns * own.high;
  else
    out.low_ns = a.low_ns * scale, out.high_ns = a.high_ns * scale;
  if (!own.calibrated && !learned_.own()) {
    const Confidence& carried = attention ? carried_attention_ : carried_products_;
    out.low_ns = std::min(out.low_ns, out.ns * carried.low);
    out.high_ns = std::max(out.high_ns, out.ns * carried.high);
  }
  out.origin = Origin::fitted;
  out.cool = !own.calibrated;
  return true;
}

Estimate Models::evaluate(const Op& op) const {
  if (const auto* w = std::get_if<Gemm>(&op.work))
    if (const DType type = arithmetic(chip_, w->a, w->compute); type != w->compute) {
      Op resolved = op;
      std::get<Gemm>(resolved.work).compute = type;
      return evaluate(resolved);
    }
  if (const auto* w = std::get_if<Convolution>(&op.work))
    if (const DType type = arithmetic(chip_, w->dtype, w->compute); type != w->compute) {
      Op resolved = op;
      std::get<Convolution>(resolved.work).compute = type;
      return evaluate(resolved);
    }
  if (const auto* w = std::get_if<Attention>(&op.work); w && w->short_batch > 0)
    return mixed(op, *w);
  if (const auto* w = std::get_if<Gemm>(&op.work); w && w->experts > 0)
    return experts_product(op, *w);
  if (Estimate e; learned(op, e)) return e;
  const Raw answer = raw(op);
  Estimate e;
  if (!answer.confidence) {
    // Communication: maya/network.h answers.
    e.origin = Origin::unknown;
    return e;
  }
  const Confidence& c = *answer.confidence;
  e.ns = answer.ns * c.scale;
  const bool brief = e.ns < c.short_ns;
  e.low_ns = e.ns * (brief ? c.short_low : c.low);
  e.high_ns = e.ns * (brief ? c.short_high : c.high);
  e.origin = c.fitted                                       ? Origin::fitted
             : std::holds_alternative<OtherKernel>(op.work) ? Origin::unknown
                                                            : Origin::first_principles;
  return e;
}

}  // namespace maya::estimate
