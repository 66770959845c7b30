#include "estimate/calibration.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/files.h"
#include "op/text.h"

namespace maya::estimate {
namespace {

struct Hash {
  std::uint64_t value{1469598103934665603ULL};
  template <class T>
  void operator()(const T& field) {
    std::uint64_t bits{};
    if constexpr (std::is_same_v<T, double>)
      std::memcpy(&bits, &field, sizeof field);
    else
      bits = static_cast<std::uint64_t>(field);
    value = (value ^ bits) * 1099511628211ULL;
    value ^= value >> 29;
  }
};

std::string_view word(std::string_view& line) {
  auto begin = line.find_first_not_of(' ');
  if (begin == line.npos) return line = {};
  auto end = line.find(' ', begin);
  auto out = line.substr(begin, end == line.npos ? end : end - begin);
  line = end == line.npos ? std::string_view{} : line.substr(end + 1);
  return out;
}

bool scan(std::string_view text, double& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() && std::isfinite(value) &&
         value > 0;
}

}  // namespace

std::uint64_t key(const Work& work) {
  Hash h;
  h(work.index());
  std::visit(
      [&](const auto& w) {
        using W = std::remove_cvref_t<decltype(w)>;
        if constexpr (std::is_same_v<W, Gemm>) {
          h(w.m), h(w.n), h(w.k), h(w.batch), h(w.a), h(w.compute), h(w.groups);
        } else if constexpr (std::is_same_v<W, Pointwise>) {
          h(w.bytes_read), h(w.bytes_written), h(w.strided);
        } else if constexpr (std::is_same_v<W, Convolution>) {
          W::each(w, [&](std::string_view name, const auto& field) {
            if (name != "layout" && name != "epilogue" && name != "compute") h(field);
          });
        } else {
          W::each(w, [&](std::string_view, const auto& field) { h(field); });
        }
      },
      work);
  return h.value;
}

Result<Calibration> Calibration::parse(std::string_view text, const std::string& origin) {
  Calibration out;
  int number = 0;
  bool versioned = false;
  auto fail = [&](const std::string& what) {
    return Error{origin + ":" + std::to_string(number) + ": " + what +
                 "; write the file anew with `maya calibrate`"};
  };
  while (!text.empty()) {
    ++number;
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    if (!versioned) {
      if (line != "maya-calibration 1")
        return fail("expected 'maya-calibration 1' on the first line, found '" +
                    std::string(line.substr(0, 40)) + "'");
      versioned = true;
      continue;
    }
    std::string_view what = word(line);
    if (what == "gpu") {
      out.gpu_ = word(line);
    } else if (what == "source") {
      continue;
    } else if (what == "op") {
      Measured m;
      double count{};
      if (!scan(word(line), m.ns) || !scan(word(line), m.low_ns) || !scan(word(line), m.high_ns) ||
          !scan(word(line), count) || m.low_ns > m.ns || m.high_ns < m.ns)
        return fail("expected 'op median low high count text' with low ≤ median ≤ high");
      auto work = parse_work(line);
      if (!work) return fail(work.error().message);
      out.ops_[key(*work)] = m;
    } else if (what == "scale") {
      std::string family(word(line));
      Scale s;
      if (family.empty() || !scan(word(line), s.factor) || !scan(word(line), s.low) ||
          !scan(word(line), s.high) || s.factor > 20 || s.factor < 0.05)
        return fail("expected 'scale family factor low high count'");
      out.scales_[std::move(family)] = s;
    } else {
      return fail("unknown line '" + std::string(what) + "'");
    }
  }
  if (!versioned) return Error{origin + ": empty; expected a file written by `maya calibrate`"};
  return out;
}

Result<Calibration> Calibration::load(const std::string& path) {
  constexpr std::size_t most = 256 << 20;  // millions of measured ops
  auto text = base::read_file(path, most);
  if (!text) return text.error();
  return parse(*text, path);
}

const Calibration::Measured* Calibration::find(const Work& work) const {
  if (ops_.empty()) return nullptr;
  auto it = ops_.find(key(work));
  return it == ops_.end() ? nullptr : &it->second;
}

const Calibration::Scale* Calibration::scale(std::string_view family) const {
  auto it = scales_.find(family);
  return it == scales_.end() ? nullptr : &it->second;
}

}  // namespace maya::estimate
