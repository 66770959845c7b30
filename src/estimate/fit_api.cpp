// The models behind a C interface, for tools/fit: the fit calls the very code that is shipped, so
// there is one implementation and nothing to keep equal. Built by tools/fit, not part of the
// program.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "estimate/features.h"
#include "estimate/learned_model.h"
#include "estimate/models.h"
#include "estimate/power.h"
#include "estimate/question.h"
#include "op/text.h"

using namespace maya;
using namespace maya::estimate;

template <class P>
static P params_of(const double* values) {
  P p;
  P::each(p, [&](std::string_view, double& v) { v = *values++; });
  return p;
}

extern "C" {

// A chip from thirteen data-sheet numbers and its names.
void* fit_chip(const char* name, const char* architecture, int major, int minor, int sms,
               double boost_mhz, double sustained_mhz, double memory_gbps, double l2_bytes,
               double l2_gbps, double watts,
               const double* peaks /* by DType, TFLOP/s, 0: not given */,
               const double* power /* null: the sheet as it is */) {
  catalog::Gpu g;
  g.name = name, g.architecture = architecture;
  g.capability_major = major, g.capability_minor = minor, g.sms = sms;
  g.boost_clock_mhz = boost_mhz, g.sustained_clock_mhz = sustained_mhz;
  g.memory_gbps = memory_gbps, g.l2_bytes = static_cast<std::int64_t>(l2_bytes);
  g.l2_gbps = l2_gbps, g.tdp_watts = watts;
  for (int i = 0; i < 17; ++i)
    if (peaks[i] > 0) g.peak_tflops[static_cast<DType>(i)] = peaks[i];
  auto* chip = new Chip(make_chip(g));
  if (power != nullptr) limit_power(*chip, params_of<PowerParams>(power));
  return chip;
}

// Parameter names of a struct, separated by spaces, and their defaults.
#define NAMES(P)                                      \
  static std::string names;                           \
  names.clear();                                      \
  P p;                                                \
  int i = 0;                                          \
  P::each(p, [&](std::string_view n, double& v) {     \
    names.append(names.empty() ? "" : " ").append(n); \
    defaults[i++] = v;                                \
  });                                                 \
  return names.c_str();
const char* fit_gemm_names(double* defaults) { NAMES(GemmParams) }
const char* fit_memory_names(double* defaults) { NAMES(MemoryParams) }
const char* fit_attention_names(double* defaults) { NAMES(AttentionParams) }
const char* fit_conv_names(double* defaults) { NAMES(ConvParams) }
const char* fit_power_names(double* defaults) { NAMES(PowerParams) }

// Ops parsed once; a handle per table.
void* fit_ops(const char** texts, const char** names, int count) {
  auto* ops = new std::vector<Op>(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto work = parse_work(texts[i]);
    if (!work) {
      std::fprintf(stderr, "%s\n", work.error().message.c_str());
      delete ops;
      return nullptr;
    }
    (*ops)[static_cast<std::size_t>(i)].work = *std::move(work);
    (*ops)[static_cast<std::size_t>(i)].name = names[i];
  }
  return ops;
}

void fit_gemm(const void* chip, const void* ops, const double* values, double* ns,
              double* features) {
  const Chip& c = *static_cast<const Chip*>(chip);
  auto p = params_of<GemmParams>(values);
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops)) {
    GemmShape shape = gemm_shape(c, std::get<Gemm>(op.work));
    GemmDetail detail = gemm_time(c, shape, p);
    *ns++ = detail.ns;
    if (features) {
      auto f = gemm_features(c, shape, detail);
      std::copy(f.begin(), f.end(), features);
      features += f.size();
    }
  }
}
int fit_gemm_feature_count() { return static_cast<int>(GemmFeatures{}.size()); }

void fit_memory(const void* chip, const void* ops, const double* values, double* ns,
                double* features) {
  const Chip& c = *static_cast<const Chip*>(chip);
  auto p = params_of<MemoryParams>(values);
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops)) {
    auto memory = memory_op(op);
    *ns++ = memory_time(c, memory->shape, p);
    if (features) {
      auto f = memory_features(c, memory->shape);
      std::copy(f.begin(), f.end(), features);
      features += f.size();
    }
  }
}
int fit_memory_feature_count() { return static_cast<int>(MemoryFeatures{}.size()); }

void fit_attention(const void* chip, const void* ops, const double* values, double* ns) {
  const Chip& c = *static_cast<const Chip*>(chip);
  auto p = params_of<AttentionParams>(values);
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops))
    *ns++ = attention_time(c, std::get<Attention>(op.work), p);
}

void fit_conv(const void* chip, const void* ops, const double* conv, const double* gemm,
              const double* memory, double* ns, double* features) {
  const Chip& c = *static_cast<const Chip*>(chip);
  auto p = params_of<ConvParams>(conv);
  auto g = params_of<GemmParams>(gemm);
  auto m = params_of<MemoryParams>(memory);
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops)) {
    const auto& work = std::get<Convolution>(op.work);
    ConvDetail detail = conv_time(c, work, p, g, m);
    *ns++ = detail.ns;
    if (features) {
      auto f = conv_features(c, work, detail);
      std::copy(f.begin(), f.end(), features);
      features += f.size();
    }
  }
}
int fit_conv_feature_count() { return static_cast<int>(ConvFeatures{}.size()); }

// What the learned models are asked: family (-1: none), analytic time, least time, features.
void fit_ask(const void* chip, const void* ops, int* family, double* base, double* limit,
             int* count, float* features) {
  const Chip& c = *static_cast<const Chip*>(chip);
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops)) {
    Question q;
    *family++ = ask(c, op, q) ? static_cast<int>(q.family) : -1;
    *base++ = q.base_ns, *limit++ = q.limit_ns, *count++ = q.count;
    std::copy(q.features.begin(), q.features.end(), features);
    features += q.features.size();
  }
}
int fit_feature_limit() { return static_cast<int>(Forest::kFeatures); }
const char* fit_learned_name(int family) {
  return family < static_cast<int>(Learned::count) ? name(static_cast<Learned>(family)).data()
                                                   : nullptr;
}

// The whole shipped estimator: what the golden table and the accuracy page are made with.
void* fit_models(const void* chip, const char* directory) {
  auto file = ModelFile::load(directory);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return nullptr;
  }
  auto learned = LearnedModels::load(std::string(directory) + "/learned",
                                     *static_cast<const Chip*>(chip), true);
  if (!learned) {
    std::fprintf(stderr, "%s\n", learned.error().message.c_str());
    return nullptr;
  }
  auto models = Models::make(*static_cast<const Chip*>(chip), *file, *std::move(learned));
  if (!models) {
    std::fprintf(stderr, "%s\n", models.error().message.c_str());
    return nullptr;
  }
  return new Models(*std::move(models));
}
void fit_evaluate(const void* models, const void* ops, double* ns, double* low, double* high) {
  for (const Op& op : *static_cast<const std::vector<Op>*>(ops)) {
    Estimate e = static_cast<const Models*>(models)->evaluate(op);
    *ns++ = e.ns, *low++ = e.low_ns, *high++ = e.high_ns;
  }
}
void fit_free_ops(void* ops) { delete static_cast<std::vector<Op>*>(ops); }
}
