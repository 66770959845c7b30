// Programs that this process starts, whichever function it calls for it (execve, posix_spawn and
// their relatives). Each start passes the handlers listed in exec.cpp before the real function gets
// it; a handler may look, or put another program, other words or another environment in its place.
//
// Handlers run between fork and exec, perhaps in a child of vfork that shares its parent's memory:
// a start that does not concern a handler must cost it no allocation and no lock.
#pragma once

namespace maya::session {

struct Start {
  const char* program;  // a path, or a name to be looked up in PATH
  char* const* words;
  char* const* environment;
};

using StartHandler = void(Start& start);

}  // namespace maya::session
