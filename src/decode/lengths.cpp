#include "decode/lengths.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace maya::decode {
namespace {

std::int64_t rounded(double length) {
  constexpr double exact = 128;
  if (length < exact) return std::max<std::int64_t>(1, std::llround(length));
  const double grain = std::exp2(std::floor(std::log2(length / exact)));
  return std::llround(length / grain) * std::llround(grain);
}

// Queries times the keys that each sees; the last query is at the last key.
double pairs_of(double q, double k, bool causal, double window) {
  if (!causal) return q * (window > 0 ? std::min(k, window) : k);
  const double first = k - q + 1;  // keys that the first query sees
  if (window <= 0 || k <= window) return q * (first + k) / 2;
  if (first >= window) return q * window;
  return (window - first + 1) * (first + window) / 2 + (k - window) * window;
}

// Sums over the sequences of one kind.
struct Sums {
  bool causal{};
  double window{};
  double pairs = 0, queries = 0;
  std::int64_t sequences = 0;
  bool alike = true;  // every token is a query: nothing was kept from earlier
  void add(double q, double k) {
    ++sequences;
    alike &= q == k;
    queries += q;
    pairs += pairs_of(q, k, causal, window);
  }
};

// The length of a sequence whose tokens look at each other, from its pairs.
double side_of(double pairs, bool causal, double window) {
  // Squares: q · (q + 1) / 2 under a causal mask, q · q without.
  const double side = causal ? std::sqrt(2 * pairs + 0.25) - 0.5 : std::sqrt(pairs);
  if (window <= 0 || side <= window) return side;
  // Beyond the window each token adds as many pairs as the window has keys.
  return window + (pairs - pairs_of(window, window, causal, window)) / window;
}

Lengths one_for_all(const Sums& sums) {
  const auto n = static_cast<double>(sums.sequences);
  Lengths out;
  out.batch = sums.sequences;
  if (sums.alike) {
    const double side = side_of(sums.pairs / n, sums.causal, sums.window);
    out.seq_q = out.seq_k = std::max<std::int64_t>(1, std::llround(side));
    return out;
  }
  out.seq_q = std::max<std::int64_t>(1, std::llround(sums.queries / n));
  const auto q = static_cast<double>(out.seq_q);
  const double k = sums.pairs / n / q + (sums.causal ? (q - 1) / 2 : 0);
  out.seq_k = std::max<std::int64_t>(out.seq_q, rounded(k));
  return out;
}

}  // namespace

std::optional<Lengths> typical_lengths(const std::int32_t* starts, const std::int32_t* keys,
                                       std::int64_t batch, bool causal, std::int64_t window) {
  constexpr double few = 16;  // more queries are a prompt, as for the estimates
  const Sums none{causal, static_cast<double>(window)};
  Sums all = none, prompts = none, tokens = none;
  for (std::int64_t i = 0; i < batch; ++i) {
    const double q = double(starts[i + 1]) - starts[i], k = keys[i];
    if (q < 0 || k < 0) return std::nullopt;
    if (q == 0 || k == 0) continue;
    if (q > k && causal) return std::nullopt;
    all.add(q, k), (q > few ? prompts : tokens).add(q, k);
  }
  if (all.sequences == 0) return std::nullopt;
  if (prompts.sequences == 0 || tokens.sequences == 0) return one_for_all(all);
  Lengths out = one_for_all(prompts);
  const Lengths beside = one_for_all(tokens);
  out.short_batch = beside.batch, out.short_q = beside.seq_q, out.short_k = beside.seq_k;
  return out;
}

void writes_all_but(const Launch& launch, std::initializer_list<std::uint64_t> lists, Decoded& d) {
  if (!launch.arguments || !launch.extent || launch.kernel->parameter_sizes.empty()) return;
  const auto* bytes = static_cast<const std::byte*>(launch.arguments[0]);
  for (std::size_t at = 0; at + 8 <= launch.kernel->parameter_sizes[0]; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    if (word < 0x10000 || launch.extent(word) == 0) continue;
    const bool list = std::find(lists.begin(), lists.end(), word) != lists.end();
    d.accesses.push_back({word, 0, !list, !list});
  }
}

std::int64_t sequences_in(const Launch& launch, std::uint64_t starts, std::int64_t total,
                          bool padded) {
  if (launch.known == nullptr || starts < 0x10000 || starts % 4 != 0 || total < 1) return 0;
  constexpr std::int64_t most = 1 << 16;
  std::int32_t before = 0;
  std::int64_t sequences = 0;  // up to the last one that has a length
  for (std::int64_t i = 0; i <= std::min(total, most); ++i) {
    const void* at = launch.known(starts + static_cast<std::uint64_t>(4 * i), 4);
    std::int32_t now = -1;
    if (at != nullptr) std::memcpy(&now, at, 4);
    if (i == 0 ? now != 0 : now < before || now > total) return padded ? sequences : 0;
    if (now == total) return i;
    if (now > before) sequences = i;
    before = now;
  }
  return padded ? sequences : 0;
}

}  // namespace maya::decode
