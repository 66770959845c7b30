// Collectives that somebody measured within one machine: catalog/network/measured.csv, one curve a
// line, times (µs) from `first` bytes on, each for twice the size of the one before:
//
//   gpu,collective,where,ranks,first,us us us …
//
// `where` is "switch" for types and operations that an NVSwitch can reduce, "ring" for the others,
// "any" where it makes no difference, and the engine's name for an all-reduce of its own ("vllm").
// Lines that begin with '#' say where the figures are from.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "maya/op.h"
#include "maya/result.h"

namespace maya::network {

struct MeasuredCurve {
  int ranks{};
  double first_bytes{};
  std::vector<double> us;

  // Between measured sizes on a line of logarithms; outside them the nearest.
  double at(double bytes) const;
  double nearest_measured(double bytes) const;  // the size itself, or the end of the curve
};

class Measured {
 public:
  // The curves of this GPU; a file that is not there holds none.
  static Result<Measured> load(const std::string& path, std::string_view gpu);
  static Result<Measured> parse(std::string_view text, std::string_view gpu,
                                const std::string& origin);

  // By number of ranks, ascending. Reduce-scatter is all-gather the other way round.
  const std::vector<MeasuredCurve>& curves(CollectiveKind kind, bool in_switch) const;
  // An engine's own all-reduce (µs), between the numbers of ranks that were measured; 0: nobody
  // did.
  double engine_us(CollectiveLibrary library, int ranks, double bytes) const;

 private:
  std::vector<MeasuredCurve>& of(CollectiveKind kind, bool in_switch);
  static constexpr std::size_t kKinds = 16;
  std::vector<MeasuredCurve> curves_[kKinds][2];
  std::map<CollectiveLibrary, std::vector<MeasuredCurve>> engines_;
};

}  // namespace maya::network
