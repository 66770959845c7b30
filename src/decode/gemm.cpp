// CUTLASS GEMMs compiled into frameworks: scaled, grouped, sparse, mixed-input. The problem's sizes
// open the parameter struct (GemmCoord m, n, k; or mode, then shape m, n, k, l).
#include <algorithm>

#include "decode/gemm_name.h"

namespace maya::decode {
namespace {

struct Tile {
  std::int64_t m{}, n{}, k{};
};

// "GemmShape<128, 64, 32>" or mangled "GemmShapeILi128ELi64ELi32EE", or cute "tuple<C<128>, C<256>,
// C<64>>".
Tile tile_of(std::string_view text) {
  Tile t;
  auto numbers = [](std::string_view s, std::string_view open, std::string_view next,
                    std::int64_t* out) {
    std::size_t at = 0;
    for (int i = 0; i < 3; ++i) {
      at = s.find(i == 0 ? open : next, at);
      if (at == std::string_view::npos) return false;
      at += (i == 0 ? open : next).size();
      out[i] = std::atoll(std::string(s.substr(at, 8)).c_str());
    }
    return out[0] > 0 && out[1] > 0 && out[2] > 0;
  };
  std::int64_t v[3];
  if (std::size_t at = text.find("GemmShape<"); at != std::string_view::npos) {
    if (numbers(text.substr(at), "GemmShape<", ", ", v)) t = {v[0], v[1], v[2]};
  } else if (at = text.find("GemmShapeILi"); at != std::string_view::npos) {
    if (numbers(text.substr(at), "GemmShapeILi", "ELi", v)) t = {v[0], v[1], v[2]};
  } else if (at = text.find("tuple<cute::C<"); at != std::string_view::npos) {
    // The first cute tuple with real extents; clusters are small.
    for (; at != std::string_view::npos; at = text.find("tuple<cute::C<", at + 1))
      if (numbers(text.substr(at), "tuple<cute::C<", "C<", v) && v[0] >= 32 && v[1] >= 8 &&
          v[2] >= 16) {
        t = {v[0], v[1], v[2]};
        break;
      }
  }
  return t;
}

}  // namespace

DType gemm_operand_type(std::string_view text) {
  struct Mark {
    std::string_view part;
    DType type;
  };
  static constexpr Mark marks[] = {
      {"float_e4m3_t", DType::f8e4m3}, {"float_e5m2_t", DType::f8e5m2}, {"float_e2m1_t", DType::f4},
      {"bfloat16_t", DType::bf16},     {"half_t", DType::f16},          {"tfloat32_t", DType::tf32},
      {"double", DType::f64},          {"signed char", DType::i8},      {"float", DType::tf32}};
  for (const Mark& m : marks)
    if (contains(text, m.part)) return m.type;
  return DType::f16;
}

Gemm gemm_of(DType type) {
  Gemm work;
  work.a = work.b = type == DType::tf32 ? DType::f32 : type;
  bool narrow =
      is_integer(type) || type == DType::f8e4m3 || type == DType::f8e5m2 || type == DType::f4;
  work.d = narrow ? DType::bf16 : work.a;
  work.compute = type;
  return work;
}

Made prepare_gemm(const Kernel& kernel, const Name& name) {
  const std::string& text = kernel.demangled;
  const std::string& mangled = kernel.mangled;
  // Short names that the demangler could not read keep everything in the mangled one.
  const std::string& detail = text.size() < 64 ? mangled : text;
  bool cutlass =
      contains(name.base, "cutlass") && (contains(detail, "gemm") || contains(detail, "Gemm"));
  bool tiny = starts_with(name.leaf, "tinygemm_") || name.leaf == "weight_int8pack_mm_kernel";
  bool batched = contains(name.leaf, "gemm_template_batched") ||
                 contains(name.leaf, "gemm_batched_smallsq") ||
                 contains(name.leaf, "gemm_template_vbatched");
  if (!cutlass && !tiny && !batched) return nullptr;

  DType type = cutlass                        ? gemm_operand_type(detail)
               : contains(name.leaf, "dgemm") ? DType::f64
               : tiny                         ? DType::bf16
                                              : DType::f32;
  Tile tile = tile_of(detail);
  bool grouped = contains(detail, "Group") || contains(detail, "grouped");
  std::vector<KeyPart> key;
  if (cutlass && !kernel.parameter_sizes.empty())
    key.push_back({0, 0, std::min<std::uint16_t>(kernel.parameter_sizes[0], 24)});
  else
    key = scalars(kernel, name);
  std::vector<std::size_t> integers;
  for (std::size_t i = 0; i < name.parameters.size(); ++i)
    if (name.parameters[i] == "int") integers.push_back(i);

  return make(key, [=](const Arguments& a, Decoded& d) {
    Gemm work = gemm_of(type);
    bool found = false;
    if (cutlass) {
      for (std::size_t at : {0, 4, 8, 16}) {
        std::int64_t m = a.at<std::int32_t>(0, at), n = a.at<std::int32_t>(0, at + 4),
                     k = a.at<std::int32_t>(0, at + 8);
        if (m < 1 || n < 1 || k < 1 || m > (1 << 28) || n > (1 << 28) || k > (1 << 28)) continue;
        if (m < 8 && n < 8) continue;
        std::int64_t l = a.at<std::int32_t>(0, at + 12);
        work.m = m, work.n = n, work.k = k;
        work.batch = at == 4 && l > 0 && l <= 65535 ? l : 1;
        found = true;
        break;
      }
    } else if (integers.size() >= 3) {
      work.m = a.integer(integers[0]), work.n = a.integer(integers[1]),
      work.k = a.integer(integers[2]);
      found = work.m > 0 && work.n > 0 && work.k > 0;
      if (batched) work.batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(a.grid(2)));
    }
    if (!found || grouped) {
      // Sizes of grouped problems are on the device. A block computes one tile per turn; the tile's
      // depth is unknown, so this is a floor.
      std::int64_t tm = std::max<std::int64_t>(tile.m, 64), tn = std::max<std::int64_t>(tile.n, 64);
      if (!found) {
        work.m = tm * static_cast<std::int64_t>(a.geometry().blocks());
        work.n = tn;
        work.k = std::max<std::int64_t>(tile.k, 64) * 8;
        d.recognised = !a.launch().arguments;
      }
      if (grouped) work.groups = std::max<std::int64_t>(1, work.groups);
    }
    d.op.work = work;
  });
}

}  // namespace maya::decode
