// Formats numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace maya::report {

std::string human_ms(double ms);                                // "138.2 ms", "1.24 s", "85.0 us"
std::string human_bytes(double bytes);                          // "58.1 GiB"
std::string human_count(double value);                          // "237,104", "12.4"
std::string human_flops(double flops);                          // "3.21 PFLOP"
std::string human_usd(double usd);                              // "$0.0012", "$31.84"
std::string percent(double share);                              // "41.3 %", "<0.1 %"
std::string rank_list(const std::vector<std::int32_t>& ranks);  // "0-3, 6"

// Rounds to a number of significant digits. 0 for values that are not finite.
double rounded(double value, int digits);

// Width on screen (UTF-8 code points), and text that is truncated or padded to a width.
int columns(const std::string& text);
std::string fit(const std::string& text, int width);
std::string fit_right(const std::string& text, int width);
// Breaks text between words into lines of at most `width` columns.
std::vector<std::string> wrap(const std::string& text, int width);

}  // namespace maya::report
