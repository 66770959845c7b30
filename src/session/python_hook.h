// Python code that a training process needs where only some ranks run: absent_groups.py.
#pragma once

namespace maya::session {

// It is handed to the interpreter when the program opens torch's first library, or now if that has
// happened, and runs before the interpreter's next instruction: in any case before a group is made.
void prepare_absent_groups();

}  // namespace maya::session
