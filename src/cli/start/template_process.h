// The templates of a directory: one process for each interpreter, its options and everything else a
// child inherits, and among those one for each set of variables its imports have read.
#pragma once

#include "request.h"

namespace maya::start {

// Of one kind. Jobs whose ranks each want a template of their own gain nothing from one.
inline constexpr int most_templates = 3;

// Connects to template `number` of this program's kind, starting it when there is none. Negative:
// there is none and none can be started.
int connect_to_template(const char* directory, const Program& program, char* const* words,
                        int number);

}  // namespace maya::start
