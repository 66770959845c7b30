#include "estimate/chip.h"

#include <algorithm>

namespace maya::estimate {
namespace {

// Types a data sheet leaves out run at the rate of the type the hardware computes them in.
constexpr std::pair<DType, DType> kStandIns[] = {
    {DType::f64, DType::f32},     {DType::tf32, DType::f32},   {DType::f16, DType::f32},
    {DType::bf16, DType::f16},    {DType::f8e4m3, DType::f16}, {DType::f8e5m2, DType::f8e4m3},
    {DType::f4, DType::f8e4m3},   {DType::i8, DType::f16},     {DType::u8, DType::i8},
    {DType::i16, DType::f32},     {DType::i32, DType::f32},    {DType::i64, DType::f32},
    {DType::boolean, DType::f32}, {DType::c64, DType::f32},    {DType::c128, DType::f64},
    {DType::unknown, DType::f32}};

}  // namespace

Chip make_chip(const catalog::Gpu& gpu) {
  Chip c;
  c.name = gpu.name;
  c.family = gpu.architecture;
  c.architecture = gpu.architecture + "-" + std::to_string(gpu.capability_major) + "." +
                   std::to_string(gpu.capability_minor);
  c.sms = std::max(1, gpu.sms);
  double boost =
      gpu.boost_clock_mhz > 0 ? gpu.boost_clock_mhz : std::max(1000.0, gpu.base_clock_mhz);
  c.clock = boost / 1e3;
  c.sustained = gpu.sustained_clock_mhz > 0 ? std::min(1.15, gpu.sustained_clock_mhz / boost) : 1.0;
  c.watts = std::max(0.0, gpu.tdp_watts);
  c.dram = std::max(1.0, gpu.memory_gbps);
  c.l2_bytes = static_cast<double>(std::max<std::int64_t>(1 << 20, gpu.l2_bytes));
  // Without a figure: 64 bytes per SM and clock is the width of the crossbar port; measured reads
  // reach about 0.55 of it (V100, A100, H100, L40 in gpu-benches).
  c.l2 = gpu.l2_gbps > 0 ? gpu.l2_gbps : 0.55 * 64 * c.sms * c.clock;
  c.l2 = std::max(c.l2, c.dram);
  // Multicast in thread block clusters (9.0); pairs of SMs that work on one tile besides (10.x).
  c.cluster = gpu.capability_major == 9 ? 2 : gpu.capability_major == 10 ? 4 : 1;
  c.pcie = gpu.pcie_gbps > 0 ? gpu.pcie_gbps : 12;
  c.nvlink = gpu.nvlink_gbps;
  if (gpu.shared_per_sm > 0) c.shared_per_sm = static_cast<double>(gpu.shared_per_sm);
  if (gpu.max_threads_per_sm > 0) c.threads_per_sm = gpu.max_threads_per_sm;

  for (auto [type, tflops] : gpu.peak_tflops) c.peak[static_cast<std::size_t>(type)] = tflops * 1e3;
  auto& f32 = c.peak[static_cast<std::size_t>(DType::f32)];
  // Two FLOPs a lane and clock; 128 lanes an SM is what every current part has.
  if (f32 <= 0) f32 = 2 * 128 * c.sms * c.clock;
  // Parts with token f16 arithmetic (1/64 of f32) and those without bf16: the libraries compute
  // such products in f32.
  auto& bf16 = c.peak[static_cast<std::size_t>(DType::bf16)];
  if (bf16 <= 0 && gpu.capability_major < 8) bf16 = f32;
  for (auto [type, stand_in] : kStandIns) {
    auto& rate = c.peak[static_cast<std::size_t>(type)];
    if (rate <= 0) rate = c.rate(stand_in);
    if (type == DType::f16 || type == DType::bf16) rate = std::max(rate, f32);
  }
  c.tf32 = gpu.peak_tflops.count(DType::tf32) > 0;
  return c;
}

}  // namespace maya::estimate
