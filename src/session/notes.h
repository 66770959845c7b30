// Lines for the user, left in the run's directory: `maya run` prints each once when the command has
// ended.
#pragma once

#include <string_view>

namespace maya::session {

// One line at the end of a file of the run directory. Uses system calls only.
void append_to_run(const char* name, std::string_view line, bool create = true);

// One line of notes.txt. Uses system calls only, so that it may be called between fork and exec.
void note(std::string_view line);

// One line of unreached.txt: a program that was started out of the emulation's reach. Shown only
// when nothing was recorded, for most such programs have nothing to do with the GPU.
void note_unreached(std::string_view line);

// Reads again where the run lies (MAYA_RUN_DIR).
void read_notes_directory();

// Device code of a library built for this CUDA major was registered: two majors in one process are
// noted, once.
void uses_runtime(int major, const void* code);

}  // namespace maya::session
