#include "estimate/attention_model.h"

#include <algorithm>
#include <cmath>

#include "estimate/power.h"

namespace maya::estimate {
bool is_decoding(const Attention& w) {
  constexpr std::int64_t most_queries = 16;  // more are a prompt
  return w.direction == Direction::forward && w.seq_q <= most_queries && w.seq_k > w.seq_q;
}

double attention_time(const Chip& chip, const Attention& w, const AttentionParams& p) {
  const bool backward = w.direction != Direction::forward;
  const double head_k = static_cast<double>(std::max<std::int64_t>(1, w.head_dim));
  const double head_v = static_cast<double>(w.head_dim_v > 0 ? w.head_dim_v : w.head_dim);
  const double head = std::max(head_k, head_v);
  const double q = static_cast<double>(std::max<std::int64_t>(1, w.seq_q));
  const double k = static_cast<double>(std::max<std::int64_t>(1, w.seq_k));
  const double heads = static_cast<double>(w.batch) * static_cast<double>(w.heads);

  // Keys the average row of queries sees, whole blocks of them.
  double keys = k;
  if (w.causal) keys = q <= k ? k - q / 2 : k * k / (2 * q);
  if (w.window > 0) keys = attention_pairs(w) / q;
  if (w.causal || w.window > 0) keys = std::min(k, keys + p.mask * (p.block_q + p.block_k) / 2);
  keys = std::ceil(keys / 16) * 16;

  double efficiency = backward ? p.backward : p.forward;
  // Between the three head sizes that were measured: linear in the logarithm.
  const double step = std::log2(std::clamp(head, 32.0, 256.0) / 128);
  efficiency *= step < 0 ? 1 + step * (1 - p.head64) : 1 + step * (p.head256 - 1);
  if (w.causal) efficiency *= p.causal;
  if (w.dropout) efficiency *= p.dropout;
  efficiency = std::clamp(efficiency, 0.02, 1.2);
  // GeForce boards do half the tensor FLOPs of a chip's SM, but exponents, loads and whatever else
  // bounds the kernel as fast. FlashAttention 2 does 162 TFLOP/s on an RTX 4090 (SageAttention,
  // arXiv 2410.02367) of 165 to 180, where full boards of the generation do half of their peak.
  constexpr double whole_sm = 1024, half = 600, most = 0.85;
  const double per_clock = chip.rate(w.dtype) / chip.sms / chip.clock;
  if (chip.tensor(w.dtype) && bytes(w.dtype) == 2 && per_clock < half)
    efficiency = std::max(efficiency, std::min(most, efficiency * whole_sm / per_clock));

  const double rate = chip.rate(w.dtype) * std::sqrt(chip.sustained) * p.sustained;
  const double rate_sm =
      rate / chip.sms * efficiency * sustained_share(chip, w.dtype, rate * efficiency);
  const double products = backward ? 2.5 : 1;
  const double per_key = 2 * p.block_q * (head_k + head_v) * products / rate_sm;
  if (is_decoding(w)) {
    const double shared =
        std::max(1.0, static_cast<double>(w.heads) /
                          static_cast<double>(std::max<std::int64_t>(1, w.kv_heads)));
    const double blocks = heads / shared * std::ceil(q * shared / p.decode_rows);
    const double one = per_key / p.block_q * p.decode_rows;
    const double spread = std::min(chip.sms, blocks * std::ceil(keys / p.block_k));
    const double arithmetic = one * keys * blocks / spread;
    const double streamed = bytes_moved(w) / (chip.dram * p.decode_dram);
    return p.floor_ns + p.decode_start_ns + std::max(arithmetic, streamed);
  }
  const double start = backward ? p.start_backward : p.start;
  const double blocks = heads * std::ceil(q / p.block_q);
  const double slots = chip.sms * p.per_sm;
  const double waves = blocks / slots, full = std::floor(waves), rest = blocks - full * slots;
  const double last =
      rest > 0 ? p.tail * std::ceil(rest / chip.sms) + (1 - p.tail) * rest / chip.sms : 0;
  const double compute = per_key * (keys + start) * (full * p.per_sm + last);
  const double memory = bytes_moved(w) / (chip.dram * p.dram_efficiency);
  const double limit = flops(w) / chip.rate(w.dtype);
  return std::max(p.floor_ns + std::max(compute, memory), limit);
}

}  // namespace maya::estimate
