// The Python frames of the calling thread, read from memory without the interpreter's lock.
#pragma once

#include <cstdint>
#include <string>

namespace maya::session {

struct PythonFrame {
  std::uintptr_t frame{}, code{}, instruction{};
};

class PythonFrames {
 public:
  // Finds out where the interpreter keeps what, later, between two instructions of the main thread.
  static void learn_soon();
  static bool known();

  // The frames of this thread, the innermost first, at most `most`; returns how many.
  static int read(PythonFrame* to, int most);

  // Of a code object that a frame of this thread has.
  static std::string file(std::uintptr_t code);
  static std::string function(std::uintptr_t code);
  static int line(const PythonFrame& frame);
  // What tells a code object from another that is made at the same address later.
  static std::uintptr_t identity(std::uintptr_t code);
  // The first argument of the frame's function; 0: none.
  static std::uintptr_t first_argument(std::uintptr_t frame);
  static const char* class_of(std::uintptr_t object);
};

}  // namespace maya::session
