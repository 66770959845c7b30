// The device work of one recording as a sequence of symbols, with a hash of any subsequence in
// O(1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

// Whether the op is known to compute gradients, from its direction (attention, normalization) or
// its name (compiled kernels). Matrix products look the same in both passes.
bool computes_gradients(const Op& op);

// A step boundary that an optimizer reported, as opposed to a profiler or a launcher.
bool is_update(const trace::Recording& recording, const trace::Record& record);

class Sequence;
// Whether the work contains backward passes or updates. PyTorch runs backward passes in a thread of
// their own.
bool has_training(const Sequence& sequence);

class Sequence {
 public:
  explicit Sequence(const trace::Recording& recording);

  std::size_t size() const { return record_.size(); }
  std::uint32_t record(std::size_t i) const { return record_[i]; }
  bool optimizer(std::size_t i) const { return optimizer_[i]; }
  // Whether these symbols are certainly updates. Other work, like clipping, uses multi-tensor
  // kernels too.
  bool certain_updates() const { return named_updates_ || certain_updates_ || !said_.empty(); }
  // Whether they are kernels of a known optimizer.
  bool named_updates() const { return named_updates_; }
  // An optimizer of the framework reported that it has updated its parameters, with whatever
  // kernels.
  struct Said {
    std::size_t behind{};    // number of symbols before the report
    std::uint32_t source{};  // which optimizer
  };
  // Empty if training continues long after the last report, as when the updates are in a graph, and
  // if there is no training work by which reports of one update could be told from the next one's.
  const std::vector<Said>& said() const { return said_; }
  // The first symbol that looks like training: a matrix product, convolution, attention, …
  std::size_t first_heavy() const { return first_heavy_; }
  bool heavy(std::size_t i) const { return heavy_[i + 1] != heavy_[i]; }
  std::uint16_t thread(std::size_t i) const { return thread_[i]; }  // that issued it
  bool gradient(std::size_t i) const { return gradient_[i]; }
  // A fill that is large enough to push everything else out of the GPU's cache.
  bool clears_cache(std::size_t i) const { return clears_cache_[i]; }
  // The number of heavy symbols in [begin, end).
  std::size_t heavy_between(std::size_t begin, std::size_t end) const {
    return heavy_[end] - heavy_[begin];
  }
  // The number of ops in [begin, end), where a graph counts as the ops in it.
  std::size_t weight_between(std::size_t begin, std::size_t end) const {
    return weight_[end] - weight_[begin];
  }
  // First symbol at or after the record.
  std::size_t at(std::uint32_t record) const;

  std::uint64_t exact(std::size_t begin,
                      std::size_t end) const;  // equal for the same ops and sizes
  std::uint64_t shape(std::size_t begin, std::size_t end) const;  // equal for the same code

 private:
  std::vector<std::uint32_t> record_;
  std::vector<bool> optimizer_, gradient_, clears_cache_;
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
  double score{};                    // 1: the sequence consists of equal segments
  std::vector<std::uint8_t> steady;  // per segment: 1 if it is like most others
};
Regularity regularity(const Sequence& sequence, std::span<const std::size_t> cuts);

// Symbols [begin, end).
struct Stretch {
  std::size_t begin{}, end{};
  std::size_t size() const { return end - begin; }
};
// The same, where the steps need to cover no more than this stretch.
Regularity regularity(const Sequence& sequence, std::span<const std::size_t> cuts, Stretch within);

// Where the program timed kernels to choose among them (Triton's and Inductor's autotuning): rounds
// of few launches, each behind a fill that clears the cache.
std::vector<Stretch> benchmarks(const Sequence& sequence);

}  // namespace maya::collate
