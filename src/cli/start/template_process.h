// The template processes of a directory. There is one kind of template for each interpreter, its
// options and everything else that a child inherits, and one template for each set of values of the
// environment variables that its imports have read.
#pragma once

#include "request.h"

namespace maya::start {

// Limit per kind. If each rank of a job needs its own template, templates save no time.
inline constexpr int most_templates = 3;

// Connects to template `number` of this program's kind and starts it if necessary. Returns a
// negative number if there is none and none can be started.
int connect_to_template(const char* directory, const Program& program, char* const* words,
                        int number);

}  // namespace maya::start
