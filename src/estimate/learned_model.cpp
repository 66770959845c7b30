#include "estimate/learned_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "estimate/experts_kernel.h"

namespace maya::estimate {
namespace {

// Reads numbers and texts; past the end it gives zeros and remembers.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T number() {
    T value{};
    if (bytes_.size() < sizeof value) {
      short_of_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint8_t>();
    if (bytes_.size() < size) {
      short_of_ = true;
      return {};
    }
    std::string out(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return out;
  }
  bool short_of() const { return short_of_; }
  bool done() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool short_of_{};
};

std::optional<Learned> family_named(std::string_view text) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Learned::count); ++i)
    if (name(static_cast<Learned>(i)) == text) return static_cast<Learned>(i);
  return std::nullopt;
}

constexpr std::uint8_t kLeafMark = 255;

bool read_forest(Bytes& in, std::size_t features, Forest& forest) {
  std::vector<std::vector<float>> thresholds(features);
  for (auto& list : thresholds) {
    list.resize(in.number<std::uint8_t>());
    for (float& value : list) value = in.number<float>();
  }
  const float scale = in.number<float>();
  const auto trees = in.number<std::uint16_t>();
  if (!std::isfinite(scale) || std::abs(scale) > 1) return false;
  std::vector<Forest::Split> splits;
  std::vector<float> leaves;
  std::vector<int> open;  // splits whose right child is still to come
  for (int tree = 0; tree < trees && !in.short_of(); ++tree) {
    const int inner = in.number<std::uint16_t>();
    splits.clear(), leaves.clear(), open.clear();
    bool left = false;  // the next node is the left child of the last split
    for (int node = 0; node < 2 * inner + 1; ++node) {
      const auto feature = in.number<std::uint8_t>();
      const bool leaf = feature == kLeafMark;
      const int index =
          leaf ? inner + static_cast<int>(leaves.size()) : static_cast<int>(splits.size());
      if (left) {
        splits.back().left = index;
      } else if (node > 0) {
        if (open.empty()) return false;
        splits[static_cast<std::size_t>(open.back())].right = index;
        open.pop_back();
      }
      if (leaf) {
        leaves.push_back(scale * static_cast<float>(in.number<std::int16_t>()));
      } else {
        const auto bin = in.number<std::uint8_t>();
        if (feature >= features || bin >= thresholds[feature].size()) return false;
        open.push_back(index);
        splits.push_back({feature, thresholds[feature][bin], -1, -1});
      }
      left = !leaf;
    }
    if (in.short_of() || !forest.add(splits, leaves)) return false;
  }
  forest.finish();
  return !in.short_of() && !forest.empty();
}

}  // namespace

bool LearnedModel::knows(std::string_view library) const {
  return std::find(libraries_.begin(), libraries_.end(), library) != libraries_.end();
}

std::string_view LearnedModel::answering(std::string_view library) const {
  return knows(library) || libraries_.empty() ? library : std::string_view(libraries_.front());
}

bool LearnedModel::covers(std::string_view kernel) const {
  return std::find(kernels_.begin(), kernels_.end(), kernel) != kernels_.end();
}

LearnedAnswer LearnedModel::answer(const Question& q, std::string_view library) const {
  const auto at = std::find(libraries_.begin(), libraries_.end(), library);
  const auto number = at == libraries_.end() ? 0 : at - libraries_.begin();
  std::array<float, Forest::kFeatures> features = q.features;
  if (q.unnamed >= 0 && static_cast<std::size_t>(number) < kernels_.size())
    features[static_cast<std::size_t>(q.unnamed)] =
        static_cast<float>(experts_kernel(kernels_[static_cast<std::size_t>(number)]));
  features[features_ - 1] = static_cast<float>(number);
  const double factor = std::exp(forest_.sum(std::span(features).first(features_)));
  LearnedAnswer a;
  a.ns = std::max(q.base_ns * factor, q.limit_ns);
  const auto step = std::find_if(steps_.begin(), steps_.end() - 1, [&](const Step& s) {
    return a.ns < static_cast<double>(s.until_ns);
  });
  a.low_ns = std::max(a.ns * static_cast<double>(step->low), std::min(a.ns, q.limit_ns));
  a.high_ns = a.ns * static_cast<double>(step->high);
  return a;
}

Result<LearnedModels> LearnedModels::parse(std::string_view bytes, const std::string& origin) {
  constexpr std::string_view magic = "MAYAFST1";
  const Error broken{origin + ": damaged or of another version; run tools/fit again"};
  if (!bytes.starts_with(magic)) return broken;
  Bytes in(bytes.substr(magic.size()));
  LearnedModels out;
  const auto count = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string family = in.text();
    const auto known = family_named(family);
    LearnedModel model;
    model.libraries_.resize(in.number<std::uint8_t>());
    for (std::string& library : model.libraries_) library = in.text();
    model.kernels_.resize(in.number<std::uint8_t>());
    for (std::string& kernel : model.kernels_) kernel = in.text();
    const std::size_t features = in.number<std::uint8_t>();
    model.steps_.resize(in.number<std::uint8_t>());
    for (auto& step : model.steps_) {
      step.until_ns = in.number<float>(), step.low = in.number<float>();
      step.high = in.number<float>();
      if (!(step.low > 0 && step.low <= 1 && step.high >= 1 && step.high < 1e3)) return broken;
    }
    if (in.short_of() || !known || model.libraries_.empty() || model.steps_.empty() ||
        features == 0 || features > Forest::kFeatures || !read_forest(in, features, model.forest_))
      return broken;
    model.features_ = features;
    out.models_[static_cast<std::size_t>(*known)] = std::move(model);
  }
  if (in.short_of() || !in.done()) return broken;
  return out;
}

Result<LearnedModels> LearnedModels::load(const std::string& directory, const Chip& chip,
                                          bool anything) {
  std::error_code code;
  std::vector<std::string> stems;  // GPU.KIND
  for (const auto& entry : std::filesystem::directory_iterator(directory, code))
    if (entry.path().extension() == ".forest") stems.push_back(entry.path().stem().string());
  std::sort(stems.begin(), stems.end());
  auto gpu_of = [](const std::string& stem) { return stem.substr(0, stem.rfind('.')); };
  auto find = [&](auto&& fits) {
    for (const std::string& stem : stems)
      if (fits(gpu_of(stem))) return gpu_of(stem);
    return std::string{};
  };
  const std::string own = chip.architecture + "_" + chip.name;
  std::string gpu = find([&](const std::string& s) { return s == own; });
  if (gpu.empty())
    gpu = find([&](const std::string& s) { return s.starts_with(chip.architecture + "_"); });
  if (gpu.empty() && anything) gpu = find([](const std::string& s) { return s == "any_gpu"; });
  LearnedModels out;
  if (gpu.empty()) return out;
  for (const std::string& stem : stems) {
    if (gpu_of(stem) != gpu) continue;
    const std::string path = directory + "/" + stem + ".forest";
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return Error{"cannot read " + path};
    auto models = parse(text.str(), path);
    if (!models) return models;
    for (std::size_t i = 0; i < out.models_.size(); ++i)
      if (models->models_[i]) out.models_[i] = std::move(models->models_[i]);
  }
  out.own_ = gpu == own;
  out.source_ = gpu.substr(gpu.find('_') + 1);
  return out;
}

}  // namespace maya::estimate
