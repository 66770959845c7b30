// What a learned model is asked about an op: an analytic time from the data sheet, the least any
// kernel could take, and features. The forest learns the logarithm of measured over analytic time.
// Features are logarithms of sizes and of times at the sheet's peaks, and how evenly work fills the
// SMs, so that what was learned on one chip means the same on its neighbours.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "estimate/chip.h"
#include "estimate/forest.h"
#include "maya/op.h"

namespace maya::estimate {

// Kernels that one model speaks of; the names are those of the sections in the files.
enum class Learned : std::uint8_t {
  gemm_16,        // products of 16-bit operands
  gemm_8,         // of 8-bit floats with a scale per tensor or row
  gemm_8_block,   // … with scales per block of 128
  gemm_4,         // NVFP4
  gemm_int8,      // 8-bit integers
  gemm_weight_8,  // 16-bit activations, 8-bit weights
  gemm_weight_4,
  prefill,      // attention of whole sequences, causal or not
  decode,       // of a few new tokens over a cache
  mla_prefill,  // multi-head latent attention: values narrower than keys
  mla_decode,
  experts_16,  // all products of a mixture-of-experts layer in one call, by type
  experts_8,
  experts_8_block,
  experts_4,
  experts_weight_4,  // 16-bit activations
  experts_mixed,     // 8-bit activations, 4-bit weights
  count
};
std::string_view name(Learned family);

struct Question {
  Learned family{Learned::count};
  double base_ns{};   // analytic, from the data sheet
  double limit_ns{};  // no kernel is faster
  int count{};        // of features; one more follows: the library's number
  int unnamed{-1};    // the feature that is which kernel, where nobody says; the model fills it in
  std::array<float, Forest::kFeatures> features{};

  void add(double value) {
    features[static_cast<std::size_t>(count++)] = static_cast<float>(value);
  }
};

// What a kernel's name adds to its sizes: whose library, scales per block, a cache of 8 bits. Names
// of `maya estimate` and of the fit are "library::scheme", those of recordings what was launched.
struct Scheme {
  std::string_view library;  // empty: a recording does not say, or nobody asked
  bool blocks{};             // scales per block of 128
  bool cache_8{};            // keys and values in 8 bits
  bool experts{};            // the products of a whole mixture-of-experts layer
  bool recorded{};           // a kernel's own name
};
Scheme scheme_of(const Op& op);
// A word in such a name, "… top=8 …", empty where it is not; the same as a number.
std::string_view named_word(const Op& op, std::string_view key);
double named_number(const Op& op, std::string_view key, double fallback);

// False: no learned model speaks of such an op.
bool ask(const Chip& chip, const Op& op, Question& question);

}  // namespace maya::estimate
