// Code run by the interpreter of a training process, if it is one of Python.
#pragma once

#include <string>

namespace maya::session {

// exec(source, {}) under the interpreter's lock, which the caller must hold. Errors are printed
// behind `purpose`.
void run_python(const std::string& source, const char* purpose);

// The interpreter's lock; waits for it. False: there is no interpreter.
class PythonLock {
 public:
  PythonLock();
  ~PythonLock();
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool held_{};
  int state_{};
};

bool has_python();

}  // namespace maya::session
