#include "estimate/question.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "estimate/experts_kernel.h"
#include "estimate/power.h"
#include "estimate/routing.h"

namespace maya::estimate {
namespace {

double d(std::int64_t v) { return static_cast<double>(v > 1 ? v : 1); }
double l(double v) { return std::log2(std::max(1e-9, v)); }
// Share of whole pieces of `step` that a size uses.
double used(double size, double step) { return size / (step * std::ceil(size / step)); }

// What a chip sustains when its tensor cores run near their peak: a board of half the power gets
// less of the same chip.
double sustained_rate(const Chip& chip, DType type) {
  constexpr double near_peak = 0.8;
  const double rate =
      chip.rate(type) * (chip.sustained > 1 ? chip.sustained : std::sqrt(chip.sustained));
  return rate * sustained_share(chip, type, near_peak * rate);
}

Learned family_of(const Gemm& w, bool blocks) {
  const double a = bytes(w.a), b = bytes(w.b), wide = std::max(a, b), narrow = std::min(a, b);
  if (wide == 2 && narrow == 1) return Learned::gemm_weight_8;
  if (wide == 2 && narrow < 1) return Learned::gemm_weight_4;
  if (wide == 2 && bytes(w.compute) == 2) return Learned::gemm_16;
  if (w.a == DType::i8 && w.b == DType::i8) return Learned::gemm_int8;
  if (wide == 1) return blocks ? Learned::gemm_8_block : Learned::gemm_8;
  if (wide < 1 && wide > 0) return Learned::gemm_4;
  return Learned::count;
}

struct Tile {
  double m, n;
};
// Tiles of the libraries: of the four main ones the number of waves and how full the last is, of
// the others what padding and the last wave cost together.
constexpr Tile kMain[] = {{256, 128}, {128, 256}, {128, 128}, {64, 64}};
constexpr Tile kOther[] = {{256, 256}, {64, 256}, {256, 64}, {64, 128}, {128, 64}, {32, 128}};
// Tiles whose product may be split along k, so that pieces of it fill SMs that would stay empty.
constexpr Tile kSplit[] = {{128, 128}, {64, 64}, {64, 128}, {256, 128}};
constexpr double kLeastSplit = 256;  // of k in a piece
// What a library weighs when it chooses: a tile's waves, and what smaller ones reach of the rate of
// the largest (each operand is read more often).
struct PricedTile {
  double m, n, price;
};
constexpr PricedTile kChoice[] = {{256, 128, 1},    {128, 256, 1},    {128, 128, 1.06},
                                  {64, 256, 1.1},   {64, 128, 1.18},  {64, 64, 1.4},
                                  {192, 128, 1.02}, {128, 192, 1.02}, {256, 192, 1},
                                  {256, 256, 1},    {128, 64, 1.18}};

bool ask_gemm(const Chip& chip, const Gemm& w, const Scheme& scheme, Question& q) {
  q.family = family_of(w, scheme.blocks);
  if (q.family == Learned::count || !chip.tensor(DType::f16)) return false;
  const DType type = q.family == Learned::gemm_weight_8 || q.family == Learned::gemm_weight_4
                         ? DType::bf16
                         : w.compute;
  // Column-major as BLAS sees it: the rows of the activations are n, those of groups m.
  const double groups = d(w.groups), batch = d(w.batch), k = d(w.k);
  const double m = d(groups > 1 ? w.m : w.n), n = d(groups > 1 ? w.n : w.m);
  const double size_a = bytes(w.b), size_b = bytes(w.a);
  const double flops = 2 * m * n * k * batch;
  const double moved = batch * (m * k * size_a + n * k * size_b * groups + 2 * m * n);
  const double compute = flops / sustained_rate(chip, type), memory = moved / chip.dram;
  q.base_ns = 1500 + std::max(compute, memory);
  q.limit_ns = flops / chip.rate(type);
  q.add(l(m)), q.add(l(n)), q.add(l(k));
  q.add(l(compute / memory)), q.add(l(q.base_ns)), q.add(l(compute)), q.add(l(memory));
  q.add(l(n * k)), q.add(l(m / n)), q.add(l(n / k)), q.add(l(m / k));
  q.add(l(moved / chip.l2_bytes));
  for (double step : {8.0, 16.0, 64.0, 128.0, 256.0}) q.add(used(m, step));
  auto waves = [&](const Tile& t) {
    return (std::ceil(m / t.m) + groups - 1) * std::ceil(n / t.n) * batch / chip.sms;
  };
  for (const Tile& t : kMain) q.add(l(waves(t))), q.add(waves(t) / std::ceil(waves(t)));
  for (const Tile& t : kOther)
    q.add(l(std::ceil(waves(t)) * chip.sms * t.m * t.n / (m * n * batch)));
  for (const Tile& t : kSplit) {
    const double tiles = waves(t) * chip.sms;
    const double split =
        std::clamp(std::floor(chip.sms / tiles), 1.0, std::max(1.0, k / kLeastSplit));
    const double full = tiles * split / chip.sms;
    q.add(l(split)), q.add(full / std::ceil(full));
  }
  double least = 0;
  int chosen = 0, number = 0;
  for (const PricedTile& t : kChoice) {
    const double cost =
        std::ceil(waves({t.m, t.n})) * chip.sms * t.m * t.n * t.price / (m * n * batch);
    if (number == 0 || cost < least) least = cost, chosen = number;
    ++number;
  }
  q.add(l(least)), q.add(chosen), q.add(std::fmod(m, 2)), q.add(used(n, 128)), q.add(used(k, 64));
  return true;
}

bool ask_attention(const Chip& chip, const Attention& w, const Scheme& scheme, Question& q) {
  if (w.direction != Direction::forward || bytes(w.dtype) > 2 || !chip.tensor(w.dtype))
    return false;
  const double batch = d(w.batch), heads = d(w.heads), kv = d(w.kv_heads);
  const double rows = d(w.seq_q), keys = d(w.seq_k), head = d(w.head_dim);
  const double head_v = w.head_dim_v > 0 ? d(w.head_dim_v) : head;
  const bool latent = head_v != head, few = rows <= 16 && keys > rows;
  q.family = few ? (latent ? Learned::mla_decode : Learned::decode)
                 : (latent ? Learned::mla_prefill : Learned::prefill);
  // Keys an average row sees.
  double seen = keys;
  if (w.causal) seen = rows <= keys ? keys - (rows - 1) / 2 : keys * keys / (2 * rows);
  if (w.window > 0) seen = std::min(seen, d(w.window));
  const double size_q = bytes(w.dtype);
  const double size_kv = scheme.cache_8 ? 1 : size_q;
  const double touched = w.window > 0 ? std::min(keys, rows + d(w.window)) : keys;
  const double flops = 2 * batch * heads * rows * seen * (head + head_v);
  const double moved = batch * (heads * rows * (head * size_q + head_v * 2) +
                                kv * touched * (head + head_v) * size_kv);
  const double compute = flops / sustained_rate(chip, w.dtype), memory = moved / chip.dram;
  q.base_ns = 3000 + std::max(compute, memory);
  q.limit_ns = flops / chip.rate(w.dtype);
  const double group = heads / kv;
  q.add(l(batch)), q.add(l(heads)), q.add(l(kv)), q.add(l(rows)), q.add(l(keys)), q.add(l(head));
  q.add(l(group)), q.add(w.window > 0 ? l(d(w.window)) : 20), q.add(l(seen)), q.add(w.causal);
  q.add(size_kv), q.add(size_q);
  q.add(l(compute)), q.add(l(memory)), q.add(l(compute / memory)), q.add(l(q.base_ns));
  q.add(used(rows, 64)), q.add(used(rows, 128)), q.add(l(rows * group));
  auto fill = [&](double blocks) {
    const double waves = blocks / chip.sms;
    q.add(l(waves)), q.add(waves / std::ceil(waves));
  };
  fill(batch * heads * std::ceil(rows / 128)), fill(batch * heads * std::ceil(rows / 64));
  fill(batch * kv * std::ceil(rows * group / 128));
  fill(batch * kv * std::ceil(touched / 256));
  q.add(l(batch * kv * keys * head));
  return true;
}

// The largest power of two that divides a size, as an exponent: what its rows can be read in.
double aligned(double size) {
  int power = 0;
  for (auto n = static_cast<std::int64_t>(size); n > 0 && n % 2 == 0 && power < 8; n /= 2) ++power;
  return power;
}

// A layer of experts as engines fuse it: a product over groups whose columns are those of all its
// matrices, so that FLOPs and weights are right; the rest is in the name.
bool ask_experts(const Chip& chip, const Op& op, const Gemm& w, const Scheme& scheme, Question& q) {
  const double size = bytes(w.a), weight = bytes(w.b);
  if (!chip.tensor(DType::f16) || size > 2) return false;
  q.family = weight == 2   ? Learned::experts_16
             : size == 2   ? Learned::experts_weight_4
             : weight == 1 ? (scheme.blocks ? Learned::experts_8_block : Learned::experts_8)
             : size == 1   ? Learned::experts_mixed
                           : Learned::experts_4;
  const double local = d(w.groups), hidden = d(w.k);
  const double matrices = named_number(op, "matrices", 3), inner = d(w.n) / matrices;
  const double top = named_number(op, "top", 1), tokens = named_number(op, "tokens", d(w.m));
  const double experts = named_number(op, "experts", local), skew = named_number(op, "skew", 0);
  const double ranks = std::max(1.0, experts / local);
  Routing routed = route(tokens, top, experts, ranks, skew);
  routed.hit = std::min(routed.rows, named_number(op, "hit", routed.hit));
  const double rows = routed.rows, hit = routed.hit, each = rows / hit;
  const double flops = 2 * rows * matrices * hidden * inner;
  const double weights = hit * matrices * hidden * inner * weight;
  const double activations = tokens * hidden * 4 + rows * (4 * hidden + 2 * matrices * inner);
  const double compute = flops / sustained_rate(chip, w.a);
  const double memory = (weights + activations) / chip.dram;
  q.base_ns = 6000 + std::max(compute, memory);
  q.limit_ns = 2 * d(w.m) * d(w.n) * hidden / chip.rate(w.a);
  // Nothing that only says which model it is (hidden size, experts per token, gated or not): there
  // are twenty, and an unseen one would be taken for its neighbour.
  q.add(l(tokens)), q.add(l(inner)), q.add(l(local)), q.add(l(ranks));
  q.add(std::max(0.0, skew));  // nobody measured what is equally likely; its loads are nearly even
  const std::string_view kernel = named_word(op, "kernel");
  if (kernel.empty()) q.unnamed = q.count;
  q.add(static_cast<double>(experts_kernel(kernel)));
  q.add(l(rows)), q.add(l(each)), q.add(l(hit)), q.add(hit / local), q.add(l(routed.most / each));
  q.add(l(compute)), q.add(l(memory)), q.add(l(compute / memory)), q.add(l(q.base_ns));
  q.add(activations / (activations + weights)), q.add(l(rows / local));
  q.add(aligned(inner)), q.add(used(inner, 128)), q.add(aligned(hidden));
  for (std::size_t i = 0; i < routed.tiles.size(); ++i) {
    const double pieces = routed.tiles[i];
    const double up = pieces * std::ceil((matrices - 1) * inner / 128) / chip.sms;
    const double down = pieces * std::ceil(hidden / 128) / chip.sms;
    q.add(l(pieces * Routing::kTiles[i] / rows));
    q.add(l(up)), q.add(l(down)), q.add(up / std::ceil(up)), q.add(down / std::ceil(down));
  }
  return true;
}

}  // namespace

std::string_view name(Learned family) {
  constexpr std::string_view names[] = {
      "gemm.16",          "gemm.8",        "gemm.8.block",      "gemm.4",           "gemm.int8",
      "gemm.weight.8",    "gemm.weight.4", "attention.prefill", "attention.decode", "mla.prefill",
      "mla.decode",       "experts.16",    "experts.8",         "experts.8.block",  "experts.4",
      "experts.weight.4", "experts.mixed"};
  static_assert(std::size(names) == static_cast<std::size_t>(Learned::count));
  return names[static_cast<std::size_t>(family)];
}

Scheme scheme_of(const Op& op) {
  Scheme s;
  const std::string_view text = op.name;
  auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  for (std::string_view library : {"vllm", "sglang", "trtllm", "any"})
    if (text.starts_with(library) && text.substr(library.size()).starts_with("::"))
      s.library = library;
  s.recorded = s.library.empty() && !text.empty();
  // DeepGEMM's kernels and cuBLASLt's mode by their names.
  s.blocks = has("fp8_block") || has("deep_gemm") || has("blockwise");
  s.cache_8 = has("cache_fp8");
  s.experts = has("moe tokens=");
  return s;
}

std::string_view named_word(const Op& op, std::string_view key) {
  const std::string pattern = " " + std::string(key) + "=";
  const auto at = op.name.find(pattern);
  if (at == op.name.npos) return {};
  const auto word = std::string_view(op.name).substr(at + pattern.size());
  return word.substr(0, word.find(' '));
}

double named_number(const Op& op, std::string_view key, double fallback) {
  const std::string_view word = named_word(op, key);
  return word.empty() ? fallback : std::strtod(word.data(), nullptr);
}

bool ask(const Chip& chip, const Op& op, Question& question) {
  question.count = 0, question.unnamed = -1;
  const Scheme scheme = scheme_of(op);
  if (const auto* w = std::get_if<Gemm>(&op.work))
    return scheme.experts ? ask_experts(chip, op, *w, scheme, question)
                          : ask_gemm(chip, *w, scheme, question);
  if (const auto* w = std::get_if<Attention>(&op.work))
    return ask_attention(chip, *w, scheme, question);
  return false;
}

}  // namespace maya::estimate
