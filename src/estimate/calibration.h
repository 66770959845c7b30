// A user's own measurements: exact times of ops, and how a family runs against the model.
//
//   maya-calibration 1
//   gpu h100-sxm
//   source three.pt.trace.json.gz
//   op 103775 99712 108200 704 gemm m=768 n=16384 k=3072 a=bf16 b=bf16 d=bf16 compute=bf16
//   scale gemm.tensor 1.04 0.93 1.11 413
//
// op: median, low, high (ns; 80 % of the runs lie between), count, the op as op/text.h writes it.
// scale: family as in the model files, factor on the model's time, interval around it, rows seen.
// Ops are found again by what decides their time: a product by m, n, k, batch and types, not by its
// leading dimensions; see key().
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "maya/op.h"
#include "maya/result.h"

namespace maya::estimate {

class Calibration {
 public:
  struct Measured {
    double ns{}, low_ns{}, high_ns{};
  };
  struct Scale {
    double factor{1}, low{0.85}, high{1.18};
  };
  static Result<Calibration> load(const std::string& path);
  static Result<Calibration> parse(std::string_view text, const std::string& origin);

  const Measured* find(const Work& work) const;
  const Scale* scale(std::string_view family) const;
  const std::string& gpu() const { return gpu_; }
  bool empty() const { return ops_.empty() && scales_.empty(); }

 private:
  std::string gpu_;
  std::unordered_map<std::uint64_t, Measured> ops_;
  std::map<std::string, Scale, std::less<>> scales_;
};

// Equal for ops that take the same time.
std::uint64_t key(const Work& work);

}  // namespace maya::estimate
