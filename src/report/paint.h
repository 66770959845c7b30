// Colours and drawing characters for a terminal, or plain ASCII instead.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "maya/report.h"

namespace maya::report {

enum class Colour { plain, bold, faint, red, green, yellow, blue, magenta, cyan };

class Paint {
 public:
  explicit Paint(const Style& style) : style_(style) {}
  std::string operator()(Colour colour, const std::string& text) const;
  // One part of a bar: its share of the whole, with its own texture.
  struct Part {
    double share{};
    Colour colour{};
    int texture{};  // 0 solid, 1 dense, 2 light, 3 dots, 4 faint, 5 slanted
  };
  std::string bar(const std::vector<Part>& parts, int width) const;
  std::string swatch(const Part& part) const;  // one column, for a legend
  const char* dot() const { return style_.unicode ? "·" : "|"; }
  const char* range() const { return style_.unicode ? "–" : "-"; }
  const char* rule() const { return style_.unicode ? "─" : "-"; }

 private:
  const char* texture(int index) const;
  Style style_;
};

}  // namespace maya::report
