// `maya estimate`: ops named on a command line or in a CSV file, and their durations.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "maya/estimate.h"
#include "maya/op.h"
#include "maya/result.h"

namespace maya::estimate {

// {"gemm", "m=4096", "n=4096", "k=8192", "dtype=bf16"}: names and keys as help() lists them. Short
// names stand for several fields: dtype= sets every type of the op, hidden= and seq= build the
// sizes.
Result<Op> parse_op(const std::vector<std::string>& words);

// The ops, their keys and an example each; the body of `maya estimate --help`.
std::string help();

struct Answer {
  Op op;
  Estimate estimate;
  double tflops{}, gbps{};  // achieved, of the op's own FLOPs and bytes; 0: has none
  double peak_share{};      // of the binding data-sheet limit
  std::string warning;      // implausible sizes or units, in one sentence; empty: none
};
Answer answer(const Op& op, const catalog::Gpu& gpu, const Estimator& estimator);
// "412.3 µs  [398.1, 430.0]  fitted  666.7 TFLOP/s (67 % of peak)"
std::string to_line(const Answer& answer);

// One op a row: column `op`, then its keys (an empty cell keeps the default); a column `gpu`
// overrides the default. Other columns pass through. Adds predicted_us, low_us, high_us, origin,
// warning. If a column measured_us (or _ms, _ns, latency_ms …) is there, rates above the data sheet
// are flagged. A row that cannot be read gets empty cells and its reason under `warning`.
struct Device {
  catalog::Gpu gpu;
  const Estimator* estimator{};
};
using FindDevice = std::function<Result<Device>(std::string_view gpu)>;
struct CsvSummary {
  int rows{}, failed{}, flagged{};
  int compared{};                       // rows with a measurement
  double mean_error{}, median_error{};  // absolute relative error of those, as a fraction
  double covered{};                     // share of those inside the interval
};
Result<CsvSummary> estimate_csv(std::istream& in, std::ostream& out, std::string_view default_gpu,
                                const FindDevice& find);

}  // namespace maya::estimate
