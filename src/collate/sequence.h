// The device work of one recording as a sequence of symbols, with hashes of any stretch in O(1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

// The op itself says so (attention, normalization, a compiled kernel's name). Matrix products do
// not.
bool computes_gradients(const Op& op);

// A step boundary that an optimizer reported, as opposed to a profiler or a launcher.
bool is_update(const trace::Recording& recording, const trace::Record& record);

class Sequence;
// Backward passes or updates are among the work. PyTorch runs backward passes in a thread of their
// own.
bool has_training(const Sequence& sequence);

class Sequence {
 public:
  explicit Sequence(const trace::Recording& recording);

  std::size_t size() const { return record_.size(); }
  std::uint32_t record(std::size_t i) const { return record_[i]; }
  bool optimizer(std::size_t i) const { return optimizer_[i]; }
  // Whether those are updates, not just kernels over lists as clipping has them.
  bool certain_updates() const { return named_updates_ || certain_updates_ || !said_.empty(); }
  // Whether they are kernels of a known optimizer.
  bool named_updates() const { return named_updates_; }
  // An optimizer of the framework said that it has updated its parameters, whatever kernels it
  // used.
  struct Said {
    std::size_t behind{};    // so many symbols
    std::uint32_t source{};  // which optimizer
  };
  // Empty where training goes on long after the last of them, as when the updates are in a graph.
  const std::vector<Said>& said() const { return said_; }
  // The first symbol that looks like training: a matrix product, convolution, attention, …
  std::size_t first_heavy() const { return first_heavy_; }
  bool heavy(std::size_t i) const { return heavy_[i + 1] != heavy_[i]; }
  std::uint16_t thread(std::size_t i) const { return thread_[i]; }  // that asked for it
  bool gradient(std::size_t i) const { return gradient_[i]; }
  // How many such symbols lie in [begin, end).
  std::size_t heavy_between(std::size_t begin, std::size_t end) const {
    return heavy_[end] - heavy_[begin];
  }
  // How much the symbols in [begin, end) ask of the device: a graph as much as the ops in it.
  std::size_t weight_between(std::size_t begin, std::size_t end) const {
    return weight_[end] - weight_[begin];
  }
  // First symbol at or after the record.
  std::size_t at(std::uint32_t record) const;

  std::uint64_t exact(std::size_t begin, std::size_t end) const;  // same ops on the same sizes
  std::uint64_t shape(std::size_t begin, std::size_t end) const;  // same code, whatever the sizes

 private:
  std::vector<std::uint32_t> record_;
  std::vector<bool> optimizer_, gradient_;
  std::vector<std::uint16_t> thread_;
  std::vector<std::uint32_t> heavy_{0};                        // prefix sums
  std::vector<std::size_t> weight_{0};                         // likewise
  std::vector<std::uint64_t> exact_{0}, shape_{0}, power_{1};  // prefix hashes, powers of the base
  void check_said();

  std::vector<Said> said_;
  std::size_t first_heavy_{};
  bool certain_updates_{}, named_updates_{};
};

// How well a list of cuts divides the sequence into equal steps.
struct Regularity {
  double score{};                    // 1: the whole sequence is equal segments
  std::vector<std::uint8_t> steady;  // per segment: like most
};
Regularity regularity(const Sequence& sequence, std::span<const std::size_t> cuts);

}  // namespace maya::collate
