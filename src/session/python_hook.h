// Python code that a training process needs where only some ranks run (absent_groups.py).
#pragma once

namespace maya::session {

// For a process that was forked into another program (start.h): torch's libraries are open already.
void prepare_python_again();

}  // namespace maya::session
