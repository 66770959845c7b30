// The markup, style and script of report.html (page.html, embedded into the program by CMake).
#pragma once

#include <string_view>

namespace maya::report {

extern const std::string_view page_template;

}  // namespace maya::report
