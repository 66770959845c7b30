// Encodes definitions as bytes and decodes them. The decoder does not trust its input: every read
// is bounded and every enum is checked.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "maya/op.h"
#include "maya/trace.h"

namespace maya::trace {

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  void unsigned_integer(std::uint64_t v) {
    while (v >= 0x80) out_.push_back(static_cast<char>(v | 0x80)), v >>= 7;
    out_.push_back(static_cast<char>(v));
  }
  void integer(std::int64_t v) {  // zigzag: small magnitudes of either sign stay short
    unsigned_integer((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void real(double v) { out_.append(reinterpret_cast<const char*>(&v), 8); }
  void text(std::string_view v) { unsigned_integer(v.size()), out_.append(v); }
  void bytes(const void* p, std::size_t n) { out_.append(static_cast<const char*>(p), n); }

 private:
  std::string& out_;
};

class Decoder {
 public:
  Decoder(const char* begin, const char* end) : p_(begin), end_(end) {}
  bool ok() const { return ok_; }
  bool done() const { return p_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - p_); }
  std::uint64_t unsigned_integer() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (p_ == end_) return fail();
      auto byte = static_cast<unsigned char>(*p_++);
      v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return v;
    }
    return fail();
  }
  std::int64_t integer() {
    std::uint64_t v = unsigned_integer();
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  double real() {
    double v = 0;
    bytes(&v, 8);
    return v;
  }
  std::string text() {
    std::uint64_t n = unsigned_integer();
    if (n > left()) return fail(), std::string();
    std::string v(p_, n);
    p_ += n;
    return v;
  }
  void bytes(void* to, std::size_t n) {
    if (n > left()) {
      fail();
      return;
    }
    std::memcpy(to, p_, n);
    p_ += n;
  }
  std::uint64_t fail() {
    ok_ = false;
    p_ = end_;
    return 0;
  }

 private:
  const char* p_;
  const char* end_;
  bool ok_ = true;
};

void encode(const Op& op, std::string& out);
bool decode(const char* begin, const char* end, Op& op);
void encode(const Graph& graph, std::string& out);
bool decode(const char* begin, const char* end, Graph& graph);
void encode(const Communicator& communicator, std::string& out);
bool decode(const char* begin, const char* end, Communicator& communicator);
void encode(const Identity& identity, std::string& out);
bool decode(const char* begin, const char* end, Identity& identity);

// Equal works have equal hashes. Used for interning.
std::uint64_t hash(const Work& work, std::string_view name);

}  // namespace maya::trace
