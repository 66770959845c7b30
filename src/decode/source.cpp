// Kernels that were compiled at run time and have no code here. Where each thread runs straight
// through the body, the source tells what it touches (shim/nvrtc/straight.h).
#include <algorithm>
#include <charconv>

#include "decode/rule.h"

namespace maya::decode {
namespace {

struct Touched {
  std::size_t parameter{};
  std::int64_t reads{}, writes{};
  DType dtype{};
};

bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return true;
}

// Empty where an element's type, and with it its size, is not known.
std::vector<Touched> touched_by(std::string_view text) {
  std::vector<Touched> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::int64_t parameter = 0;
    Touched touched;
    if (!take_number(entry, parameter) || !take_number(entry, touched.reads) ||
        !take_number(entry, touched.writes))
      return {};
    touched.parameter = static_cast<std::size_t>(parameter);
    touched.dtype = dtype_of(entry);
    if (touched.dtype == DType::unknown) return {};
    found.push_back(touched);
  }
  return found;
}

}  // namespace

Made prepare_source(const Kernel& kernel, std::string_view touches) {
  const std::vector<Touched> touched = touched_by(touches);
  if (touched.empty()) return nullptr;
  std::vector<KeyPart> parts;  // the sizes among the arguments
  for (std::size_t i = 0; i < kernel.parameter_sizes.size() && i < 255; ++i)
    if (std::none_of(touched.begin(), touched.end(),
                     [&](const Touched& t) { return t.parameter == i; }))
      parts.push_back(
          {static_cast<std::uint8_t>(i), 0, std::min<std::uint16_t>(kernel.parameter_sizes[i], 8)});
  return make(std::move(parts), [touched](const Arguments& a, Decoded& d) {
    Pointwise work;
    work.elements = static_cast<std::int64_t>(a.geometry().threads());
    work.inputs = work.outputs = 0;
    work.vector = 1;
    for (const Touched& t : touched) {
      const std::uint64_t address = a.pointer(t.parameter);
      if (address == 0) continue;
      // Of a tensor that is smaller, threads share elements.
      const std::uint64_t extent = a.extent(address);
      auto bytes = [&](std::int64_t each) {
        const auto all = static_cast<std::uint64_t>(work.elements * each * whole_bytes(t.dtype));
        return static_cast<std::int64_t>(extent > 0 ? std::min(all, extent) : all);
      };
      if (t.reads > 0) {
        work.bytes_read += bytes(t.reads);
        ++work.inputs;
        read(d, address, bytes(t.reads));
      }
      if (t.writes > 0) {
        work.bytes_written += bytes(t.writes);
        ++work.outputs;
        if (!is_integer(t.dtype)) work.dtype = t.dtype;
        write(d, address, bytes(t.writes));
      }
    }
    d.op.work = work;
  });
}

}  // namespace maya::decode
