// Lengths of sequences that one attention kernel works on together.
//
// A batch of a serving engine holds sequences of many lengths: prompts that are read for the first
// time, and single tokens that look back on thousands. What the kernel computes is the sum of
// queries · keys over the sequences, and what it reads is the sum of the keys. One query and one
// key length with the same sums stand for all sequences of a kind: prompts, and tokens that are
// decoded beside them. Contexts grow by a token with each step; long ones are rounded to one part
// in 128, so that a thousand steps are a few dozen ops.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "decode/decode.h"

namespace maya::decode {

struct Lengths {
  std::int64_t batch{}, seq_q{}, seq_k{};
  // Sequences of a few queries where others have many; else 0.
  std::int64_t short_batch{}, short_q{}, short_k{};
};

// `starts`: where each sequence's queries begin, batch + 1 numbers from 0 on; `keys`: how many keys
// each has. `window`: how many keys a query sees at most; 0: all. Empty where the numbers cannot be
// lengths.
std::optional<Lengths> typical_lengths(const std::int32_t* starts, const std::int32_t* keys,
                                       std::int64_t batch, bool causal, std::int64_t window = 0);

// Everything the launch's one struct points to may be written, but for the lists of lengths at
// `lists`: engines use them again after the attention.
void writes_all_but(const Launch& launch, std::initializer_list<std::uint64_t> lists, Decoded& d);

// The sequences in a list of starts at this address, if its values are known: from 0, never
// falling, up to `total`. Sequences of no length at the end, which engines fill up their batches
// with, do not count. 0: not such a list. `padded`: the list may stop short of the total, because a
// CUDA graph was captured for more tokens than this launch has.
std::int64_t sequences_in(const Launch& launch, std::uint64_t starts, std::int64_t total,
                          bool padded = false);

}  // namespace maya::decode
