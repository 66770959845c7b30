// Data sheets for the tests: one part of each generation, and an invented one.
#pragma once

#include <vector>

#include "maya/catalog.h"

namespace maya::estimate {

inline catalog::Gpu sheet(const char* name, const char* architecture, int major, int minor, int sms,
                          double boost, double gbps, double l2_mb, double f32, double f16,
                          double tf32) {
  catalog::Gpu g;
  g.name = name, g.architecture = architecture;
  g.capability_major = major, g.capability_minor = minor;
  g.sms = sms, g.boost_clock_mhz = boost, g.memory_gbps = gbps;
  g.l2_bytes = static_cast<std::int64_t>(l2_mb * 1048576);
  g.peak_tflops = {{DType::f32, f32}, {DType::f16, f16}};
  if (tf32 > 0) g.peak_tflops[DType::tf32] = tf32, g.peak_tflops[DType::bf16] = f16;
  g.pcie_gbps = 25;
  return g;
}

inline std::vector<catalog::Gpu> test_gpus() {
  return {sheet("p100", "pascal", 6, 0, 56, 1328, 732, 4, 9.5, 19, 0),
          sheet("v100-sxm2-32gb", "volta", 7, 0, 80, 1530, 900, 6, 15.7, 125, 0),
          sheet("a100-80gb-sxm", "ampere", 8, 0, 108, 1410, 2039, 40, 19.5, 312, 156),
          sheet("rtx3090", "ampere", 8, 6, 82, 1695, 936, 6, 35.6, 71, 35.6),
          sheet("rtx4090", "ada", 8, 9, 128, 2520, 1008, 72, 82.6, 165, 82.6),
          sheet("h100-sxm", "hopper", 9, 0, 132, 1980, 3350, 50, 67, 989, 495),
          sheet("b200-sxm", "blackwell", 10, 0, 148, 1965, 8000, 126, 75, 2250, 1125),
          sheet("nobody-measured-it", "rubin", 12, 0, 200, 2100, 13000, 192, 110, 4000, 2000)};
}

}  // namespace maya::estimate
