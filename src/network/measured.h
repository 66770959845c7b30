// Published measurements of collectives within one machine: catalog/network/measured.csv. Each line
// is a curve of times in µs. The first time is for `first` bytes, and the size doubles for each
// further one:
//
//   gpu,collective,where,ranks,first,us us us …
//
// `where` is "switch" for types and operations that an NVSwitch can reduce, "ring" for others, and
// "any" if it makes no difference. Lines that begin with '#' name the sources.
#pragma once

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

  // Interpolates linearly in logarithms between measured sizes; uses the nearest one outside.
  double at(double bytes) const;
  double nearest_measured(double bytes) const;  // the size itself, or the end of the curve
};

class Measured {
 public:
  // The curves of this GPU. If the file does not exist there are none.
  static Result<Measured> load(const std::string& path, std::string_view gpu);
  static Result<Measured> parse(std::string_view text, std::string_view gpu,
                                const std::string& origin);

  // By number of ranks, ascending. Reduce-scatter uses the curves of all-gather, which transfers
  // the same data in the other direction.
  const std::vector<MeasuredCurve>& curves(CollectiveKind kind, bool in_switch) const;

 private:
  std::vector<MeasuredCurve>& of(CollectiveKind kind, bool in_switch);
  static constexpr std::size_t kKinds = 16;
  std::vector<MeasuredCurve> curves_[kKinds][2];
};

}  // namespace maya::network
