// LZ4 blocks, as older fat binaries are packed. Decompression only; bounded on both sides.
#pragma once

#include <cstddef>
#include <cstring>

namespace maya::device {

inline bool lz4_decompress(const char* in, std::size_t in_bytes, char* out, std::size_t out_bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(in);
  const auto* end = p + in_bytes;
  char* to = out;
  char* to_end = out + out_bytes;
  auto length = [&](std::size_t n, bool& ok) {
    if (n != 15) return n;
    for (unsigned char byte = 255; byte == 255;) {
      if (p == end) return ok = false, n;
      n += byte = *p++;
    }
    return n;
  };
  bool ok = true;
  while (p < end) {
    unsigned char token = *p++;
    std::size_t literals = length(token >> 4, ok);
    if (!ok || literals > static_cast<std::size_t>(end - p) ||
        literals > static_cast<std::size_t>(to_end - to))
      return false;
    if (literals > 0) std::memcpy(to, p, literals);  // of nothing there may be no address
    p += literals, to += literals;
    if (p == end || to == to_end) break;  // the last sequence has no match
    if (end - p < 2) return false;
    std::size_t offset = p[0] | static_cast<std::size_t>(p[1]) << 8;
    p += 2;
    std::size_t match = length(token & 15, ok) + 4;
    if (!ok || offset == 0 || offset > static_cast<std::size_t>(to - out) ||
        match > static_cast<std::size_t>(to_end - to))
      return false;
    for (const char* from = to - offset; match > 0; --match) *to++ = *from++;
  }
  return to == to_end;
}

}  // namespace maya::device
