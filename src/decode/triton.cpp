// Triton, Inductor and any other kernel that comes with its PTX: work read off the kernel itself.
// Without the PTX, Inductor's names and the launch's pointers and sizes give a rougher answer.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "decode/assembled.h"
#include "decode/execution.h"
#include "decode/ptx.h"
#include "decode/ptx_machine.h"
#include "decode/repeats.h"
#include "decode/rule.h"
#include "decode/triton_cache.h"

namespace maya::decode {
namespace {

class FromPtx : public Decoder, public Executable {
 public:
  std::unique_ptr<ptx::Program> program;
  ptx::Knowable knowable;
  ptx::Scout scout;
  std::vector<std::uint8_t> wide;  // 8-byte parameters, which may be addresses
  std::vector<KeyPart> narrow;
  std::uint32_t stack{};
  double local_per_global{};
  // Bytes behind each parameter that decided branches of the launches so far: part of the key.
  mutable std::vector<std::uint64_t> steered_by;
  mutable Repeats repeats;
  mutable std::uint64_t spent{};   // instructions that were run
  mutable std::uint64_t wasted{};  // instructions of launches in a row that told nothing

  // The limits go by instructions, not by time, so that every run of a program knows the same.
  const Effects* execute(const Launch& launch, Effects& space) const override {
    // Some kernels fail a few times while an engine warms up on values that nobody knows; one that
    // costs half a million instructions in every step (an embedding of unknown tokens) must not be
    // tried for ever.
    constexpr std::uint64_t in_vain = 20'000'000;
    constexpr std::uint64_t generous = 40'000'000, frugal = 10'000'000, enough = 1'000'000'000;
    constexpr std::int64_t small = 1 << 14;  // threads
    if (!knowable.stores || wasted > in_vain) return nullptr;
    if (const Effects* before = repeats.find(launch)) return before;
    const std::uint64_t budget = spent < enough ? generous : frugal;
    ptx::Machine machine(*program, launch, budget, &scout);
    bool good = machine.run(space);
    spent += space.steps;
    if (!good && machine.undecided() && elements(launch) <= small) {
      const std::uint64_t steps = space.steps;
      ptx::Machine second(*program, launch);
      second.take_unknown_numbers_to_differ();
      space = {};
      good = space.assumed = second.run(space);
      spent += space.steps;
      space.steps += steps;
    }
    wasted = good ? 0 : wasted + space.steps;
    if (good) repeats.keep(launch, space);
    return good ? &space : nullptr;
  }

  // Kernels that write values of their own, constants and places, into small tensors.
  std::int64_t touches_values_up_to() const override { return knowable.own_values ? 1 << 14 : 0; }
  std::int64_t elements(const Launch& launch) const override {
    const auto& b = launch.geometry.block;
    return static_cast<std::int64_t>(launch.geometry.blocks() * b[0] * b[1] * b[2]);
  }

  std::vector<bool> read_only() const override { return ptx::read_only_parameters(*program); }

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    std::size_t used = 0;
    for (const KeyPart& part : narrow) {
      const std::byte* p = a.raw(part.parameter, 0, part.size);
      if (!p || used + part.size > capacity) break;
      std::memcpy(out + used, p, part.size);
      used += part.size;
    }
    for (std::uint8_t i : wide) {
      // Strides and sizes may be 64 bits wide; addresses are not part of the key but for being
      // there.
      std::uint64_t word = a.pointer(i);
      if (word > 0xffffffff) word = 0;
      if (used + 8 > capacity) break;
      std::memcpy(out + used, &word, 8);
      used += 8;
    }
    for (std::size_t i = 0; i < steered_by.size(); ++i) {
      if (steered_by[i] == 0 || launch.known == nullptr || used + 8 > capacity) continue;
      const std::uint64_t hash = hash_known(launch, a.pointer(i), steered_by[i]);
      std::memcpy(out + used, &hash, 8);
      used += 8;
    }
    return used;
  }

  // Of those bytes that are known; 0: none is.
  static std::uint64_t hash_known(const Launch& launch, std::uint64_t from, std::uint64_t bytes) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    bool any = false;
    auto add = [&](const void* data, std::uint64_t count) {
      const auto* at = static_cast<const std::uint8_t*>(data);
      for (std::uint64_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * 0x100000001b3ULL;
      any = true;
    };
    if (const void* all = launch.known(from, bytes)) {
      add(all, bytes);
    } else {
      constexpr std::uint64_t entry = 4, most = 4096;
      for (std::uint64_t at = 0; at + entry <= std::min(bytes, most); at += entry)
        if (const void* one = launch.known(from + at, entry)) add(one, entry);
    }
    return any ? hash : 0;
  }

  Decoded decode(const Launch& launch) const override {
    Decoded d;
    d.op.geometry = launch.geometry;
    ptx::Totals t = ptx::count(*program, launch);
    steered_by.resize(std::max(steered_by.size(), t.steered_by.size()));
    for (std::size_t i = 0; i < t.steered_by.size(); ++i)
      steered_by[i] = std::max(steered_by[i], t.steered_by[i]);
    TritonKernel work;
    work.bytes_read = std::llround(t.bytes_read);
    work.bytes_written = std::llround(t.bytes_written);
    work.flops = std::llround(t.flops);
    work.tensor_flops = std::llround(t.tensor_flops);
    work.dtype = program->dtype;
    work.exact = t.exact;
    work.loops = t.loops;
    work.stack = static_cast<std::int32_t>(stack);
    work.spilled = std::llround((t.bytes_read + t.bytes_written) * local_per_global);
    const auto& b = launch.geometry.block;
    work.num_warps = static_cast<std::int32_t>(std::max(1u, b[0] * b[1] * b[2] / 32));
    d.op.work = work;
    return d;
  }
};

bool inductor_name(std::string_view name) {
  return starts_with(name, "triton_poi_") || starts_with(name, "triton_red_") ||
         starts_with(name, "triton_per_") || starts_with(name, "triton_tem_") ||
         starts_with(name, "triton_for_") || starts_with(name, "triton_mm") ||
         starts_with(name, "triton__") || starts_with(name, "triton_unk_");
}

// Inductor's signature: pointers first, sizes last (xnumel, [rnumel]). Newer Triton appends two
// scratch pointers. Every pointer is taken as one tensor of xnumel · rnumel elements of two bytes,
// the last in-order pointers of a pointwise kernel being outputs.
Made from_name(const Kernel& kernel, const Name& name) {
  bool reduction = starts_with(name.leaf, "triton_red_") || starts_with(name.leaf, "triton_per_");
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    std::vector<std::int64_t> sizes;
    int pointers = 0;
    for (std::size_t i = 0; i < a.kernel().parameter_sizes.size(); ++i) {
      if (a.size(i) == 4) {
        sizes.push_back(a.integer(i));
      } else if (a.size(i) == 8) {
        std::uint64_t word = a.pointer(i);
        bool device =
            a.launch().extent ? word > 0xffff && a.launch().extent(word) > 0 : word > 0xffffffff;
        if (device)
          ++pointers;
        else if (word > 0)
          sizes.push_back(static_cast<std::int64_t>(word));
      }
    }
    std::int64_t elements = 1;
    for (std::int64_t s : sizes) elements *= std::clamp<std::int64_t>(s, 1, std::int64_t{1} << 40);
    auto threads = static_cast<std::int64_t>(a.geometry().threads());
    if (sizes.empty()) elements = threads * 8;
    TritonKernel work;
    std::int64_t rows = reduction && sizes.size() > 1 ? sizes[sizes.size() - 2] : elements;
    int tensors = std::max(2, pointers);
    std::int64_t outputs = std::max(1, tensors / 3);
    work.bytes_read = elements * 2 * (tensors - outputs);
    work.bytes_written = (reduction ? rows : elements) * 2 * outputs;
    work.flops = elements * tensors;
    const auto& b = a.geometry().block;
    work.num_warps = static_cast<std::int32_t>(std::max(1u, b[0] * b[1] * b[2] / 32));
    work.dtype = DType::bf16;
    d.op.work = work;
  });
}

}  // namespace

Made prepare_triton(const Kernel& kernel, const Name& name) {
  std::shared_ptr<const std::string> kept;
  std::string_view text = kernel.ptx;
  if (text.empty() && !kernel.image.empty()) {
    if (const char* run = std::getenv("MAYA_RUN_DIR")) kept = find_assembled(run, kernel.image);
    if (!kept) kept = find_triton_file(kernel.mangled, kernel.image, ".ptx");
    if (kept) text = *kept;
  }
  if (!text.empty()) {
    if (auto program = ptx::parse(text, kernel.mangled)) {
      auto d = std::make_unique<FromPtx>();
      for (std::size_t i = 0; i < kernel.parameter_sizes.size() && i < 255; ++i) {
        if (kernel.parameter_sizes[i] == 8)
          d->wide.push_back(static_cast<std::uint8_t>(i));
        else if (kernel.parameter_sizes[i] < 8)
          d->narrow.push_back({static_cast<std::uint8_t>(i), 0, kernel.parameter_sizes[i]});
      }
      d->knowable = ptx::knowable(*program);
      if (d->knowable.stores) d->scout = ptx::Scout(*program);
      d->program = std::move(program);
      d->stack = kernel.stack, d->local_per_global = kernel.local_per_global;
      return d;
    }
  }
  if (inductor_name(name.leaf)) return from_name(kernel, name);
  return nullptr;
}

}  // namespace maya::decode
