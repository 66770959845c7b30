#include "base/visible.h"

#include <cstdint>

namespace maya::base {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

void append_byte(std::string& out, unsigned char byte) {
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    case 0x1b:
      out += "\\e";
      return;
    default:
      out += {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]};
  }
}

void append_code_point(std::string& out, std::uint32_t point) {
  out += "\\u{";
  for (int shift = 20; shift >= 0; shift -= 4)
    if (point >> shift || shift < 16) out += hex_digits[point >> shift & 15];
  out += '}';
}

// Length and code point of the UTF-8 sequence at the front. The length is 0 if there is no valid
// sequence; overlong forms, surrogates and values above U+10FFFF are not valid.
std::size_t sequence(std::string_view text, std::uint32_t& point) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80       ? 1
                             : lead >> 5 == 6  ? 2
                             : lead >> 4 == 14 ? 3
                             : lead >> 3 == 30 ? 4
                                               : 0;
  if (length == 0 || length > text.size()) return 0;
  if (length == 1) return point = lead, 1;
  point = lead & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if (next >> 6 != 2) return 0;
    point = point << 6 | (next & 0x3f);
  }
  static constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
  return length;
}

// Characters that are invisible or reorder the text: bidirectional controls, zero-width characters,
// line and paragraph separators, byte order marks, tags.
bool hidden(std::uint32_t point) {
  return (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2060 && point <= 0x206f) || point == 0x61c || point == 0xfeff ||
         (point >= 0xfff9 && point <= 0xfffb) || (point >= 0xe0000 && point <= 0xe0fff);
}

std::string made_visible(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t length = sequence(text, point);
    if (length == 0) {
      append_byte(out, static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (point == '\n' && lines) {
      out += '\n';
    } else if (point < 0x20 || point == 0x7f) {
      append_byte(out, static_cast<unsigned char>(point));
    } else if ((point >= 0x80 && point < 0xa0) || hidden(point)) {
      append_code_point(out, point);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string visible(std::string_view text) { return made_visible(text, false); }
std::string visible_lines(std::string_view text) { return made_visible(text, true); }

}  // namespace maya::base
