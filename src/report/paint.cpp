#include "report/paint.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace maya::report {

std::string Paint::operator()(Colour colour, const std::string& text) const {
  static constexpr const char* codes[] = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!style_.colour || colour == Colour::plain) return text;
  return std::string("\033[") + codes[static_cast<int>(colour)] + "m" + text + "\033[0m";
}

const char* Paint::texture(int index) const {
  static constexpr const char* blocks[] = {"█", "▓", "▒", "·", "░", "╱"};
  static constexpr const char* letters[] = {"#", "=", ":", ".", "-", "/"};
  return style_.unicode ? blocks[index] : letters[index];
}

std::string Paint::swatch(const Part& part) const {
  return (*this)(part.colour, texture(part.texture));
}

std::string Paint::bar(const std::vector<Part>& parts, int width) const {
  std::string line;
  double sum = 0;
  int drawn = 0;
  for (const Part& part : parts) {
    sum += part.share;
    int until = static_cast<int>(std::lround(sum * width));
    // Every part gets at least one column if there is room.
    if (part.share > 0.002 && until <= drawn) until = drawn + 1;
    until = std::min(until, width);
    std::string piece;
    for (; drawn < until; ++drawn) piece += texture(part.texture);
    line += (*this)(part.colour, piece);
  }
  return line + std::string(width - drawn, ' ');
}

Style style_of_stdout() {
  Style style;
  auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  const char* term = get("TERM");
  style.colour = isatty(STDOUT_FILENO) && !*get("NO_COLOR") && std::strcmp(term, "dumb") != 0;
  // Containers often have no locale although the terminal is UTF-8. ASCII is used only with an
  // explicit C locale.
  const char* locale = *get("LC_ALL") ? get("LC_ALL") : get("LC_CTYPE");
  style.unicode = std::strcmp(locale, "C") != 0 && std::strcmp(locale, "POSIX") != 0 &&
                  std::strcmp(term, "dumb") != 0;
  return style;
}

}  // namespace maya::report
