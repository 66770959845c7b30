// Names and sentences of CUDA's error numbers, for both libraries.
#pragma once

#include "session/session.h"

namespace maya::session {

struct ErrorText {
  int code;
  const char* runtime;  // "cudaErrorMemoryAllocation"
  const char* driver;   // "CUDA_ERROR_OUT_OF_MEMORY"
  const char* text;     // as a program prints it
};

// Null for a number nobody knows.
MAYA_EXPORT const ErrorText* error_text(int code);

}  // namespace maya::session
