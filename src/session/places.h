// The place in the user's program that asked for each piece of work (`maya run --stacks`): the
// Python stack of the calling thread and the innermost nn.Module in it.
//
// Frames are read, not asked for: at a launch PyTorch has released the interpreter's lock, and
// taking it here could wait for a thread that waits for us. A thread's own frames cannot change
// while it is inside a call, so its pointers (frame → code object and instruction) are followed as
// a debugger would. Where they lie is found out once, with a function of which everything is known
// (python_frames.h), so that there is no table of Python versions to keep.
//
// Work of the autograd engine's threads has no Python stack. Its node carries the thread and number
// of the forward op it belongs to, and gets that op's place, marked as backward.
//
// The places of a process are a text file beside its recording (docs/FORMAT.md), which programs
// that do not know it do not open.
#pragma once

#include <cstdint>
#include <string>

namespace maya::session {

// Whether --stacks was asked for. One load; everything else happens only then.
extern bool places_wanted;

// To be called for every record with host time, before it is written, in the order of the thread's
// records; `work`: the record is one whose place is of interest.
void note_place(std::uint16_t thread, bool work);

void begin_places(const std::string& directory);  // the recording in the run directory has begun
void finish_places();                             // … and ends
void abandon_places();                            // in a forked child

}  // namespace maya::session
