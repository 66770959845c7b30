// What the families share: reading arguments, and a decoder made of a key and a function.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "decode/decode.h"
#include "decode/name.h"

namespace maya::decode {

// The arguments of one launch, read with bounds where the cubin told the sizes.
class Arguments {
 public:
  explicit Arguments(const Launch& launch) : launch_(launch), kernel_(*launch.kernel) {}

  const Launch& launch() const { return launch_; }
  const Geometry& geometry() const { return launch_.geometry; }
  const Kernel& kernel() const { return kernel_; }
  std::uint64_t grid(int i) const { return launch_.geometry.grid[i]; }
  std::uint64_t block(int i) const { return launch_.geometry.block[i]; }

  // Zero when the parameter is missing or too small: a wrong size becomes a small op, never a
  // crash.
  template <class T>
  T at(std::size_t index, std::size_t offset = 0) const {
    T value{};
    if (const std::byte* p = raw(index, offset, sizeof(T))) std::memcpy(&value, p, sizeof(T));
    return value;
  }
  // An int or a long, as the cubin says.
  std::int64_t integer(std::size_t index) const {
    if (size(index) == 4) return at<std::int32_t>(index);
    if (size(index) == 1) return at<std::uint8_t>(index);
    return at<std::int64_t>(index);
  }
  std::uint64_t pointer(std::size_t index, std::size_t offset = 0) const {
    return at<std::uint64_t>(index, offset);
  }
  std::size_t size(std::size_t index) const {
    return index < kernel_.parameter_sizes.size() ? kernel_.parameter_sizes[index] : 0;
  }
  const std::byte* raw(std::size_t index, std::size_t offset, std::size_t bytes) const {
    if (!launch_.arguments || index >= kernel_.parameter_sizes.size()) return nullptr;
    if (offset + bytes > kernel_.parameter_sizes[index]) return nullptr;
    const auto* p = static_cast<const std::byte*>(launch_.arguments[index]);
    return p ? p + offset : nullptr;
  }
  // Bytes of the allocation behind a device address; unlimited when nobody can tell.
  std::uint64_t extent(std::uint64_t address) const {
    return launch_.extent ? launch_.extent(address) : ~std::uint64_t{0};
  }

 private:
  const Launch& launch_;
  const Kernel& kernel_;
};

struct KeyPart {
  std::uint8_t parameter{};
  std::uint16_t offset{}, size{};
};

using Body = std::function<void(const Arguments&, Decoded&)>;

class RuleDecoder : public Decoder {
 public:
  using Count = std::function<std::int64_t(const Arguments&)>;

  RuleDecoder(std::vector<KeyPart> parts, Body body, bool values = false)
      : parts_(std::move(parts)), body_(std::move(body)), values_(values) {}
  // Touches values where there are few elements.
  RuleDecoder(std::vector<KeyPart> parts, Body body, std::int64_t up_to, Count count)
      : parts_(std::move(parts)), body_(std::move(body)), up_to_(up_to), count_(std::move(count)) {}

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override;
  Decoded decode(const Launch& launch) const override;
  bool touches_values() const override { return values_; }
  std::int64_t touches_values_up_to() const override { return up_to_; }
  std::int64_t elements(const Launch& launch) const override {
    return count_ ? count_(Arguments(launch)) : INT64_MAX;
  }

 private:
  std::vector<KeyPart> parts_;
  Body body_;
  bool values_{};
  std::int64_t up_to_{};
  Count count_;
};

using Made = std::unique_ptr<Decoder>;

// Parameters `indices` decide the op, whole.
std::vector<KeyPart> whole(const Kernel& kernel, std::initializer_list<int> indices);
// Every parameter that is no pointer and not larger than 64 bytes.
std::vector<KeyPart> scalars(const Kernel& kernel, const Name& name);

Made make(std::vector<KeyPart> parts, Body body, bool values = false);

// A family: returns null for kernels it does not know.
using Prepare = Made (*)(const Kernel&, const Name&);

// FNV-1a over 8-byte words: keys of structs that do not fit.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash ^= word;
  hash *= 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// Of an element in memory, where types below a byte take one.
inline int whole_bytes(DType type) { return std::max(1, bits(type) / 8); }

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return b > 0 ? (a + b - 1) / b : 0; }

void read(Decoded& out, std::uint64_t address, std::int64_t bytes);
void write(Decoded& out, std::uint64_t address, std::int64_t bytes);

// The families, one per file.
Made prepare_elementwise(const Kernel&, const Name&);
Made prepare_reduce(const Kernel&, const Name&);
Made prepare_softmax(const Kernel&, const Name&);
Made prepare_norm(const Kernel&, const Name&);
Made prepare_copy(const Kernel&, const Name&);
Made prepare_multi_tensor(const Kernel&, const Name&);
Made prepare_flash2(const Kernel&, const Name&);
Made prepare_flash3(const Kernel&, const Name&);
Made prepare_memory_efficient(const Kernel&, const Name&);
Made prepare_index(const Kernel&, const Name&);
Made prepare_places(const Kernel&, const Name&);  // asked by prepare_index
Made prepare_embedding(const Kernel&, const Name&);
Made prepare_loss(const Kernel&, const Name&);
Made prepare_random(const Kernel&, const Name&);
Made prepare_sort(const Kernel&, const Name&);
Made prepare_scan(const Kernel&, const Name&);
Made prepare_cub(const Kernel&, const Name&);
Made prepare_pool(const Kernel&, const Name&);
Made prepare_grouped(const Kernel&, const Name&);
Made prepare_gemm(const Kernel&, const Name&);
Made prepare_package(const Kernel&, const Name&);
Made prepare_engine(const Kernel&, const Name&);
Made prepare_signature(const Kernel&, const Name&);  // known names, read off their parameter lists
Made prepare_triton(const Kernel&, const Name&);
// Kernels compiled at run time, from what their source tells: parameter, elements a thread reads
// and writes there, and their type, as in "0 1 0 float;1 0 1 float;".
Made prepare_source(const Kernel&, std::string_view touches);
Made prepare_unknown(const Kernel&, const Name&);  // never null

}  // namespace maya::decode
