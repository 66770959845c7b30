// What a training process needs when its program opens torch: see python_hook.cpp.
#pragma once

namespace maya::session {

// For a process that was forked into another program (start.h): torch's libraries are open already.
void prepare_python_again();

}  // namespace maya::session
