#include "session/machine.h"

extern "C" {

const char* cudaGetErrorName(int code) {
  const auto* entry = maya::session::error_text(code);
  return entry != nullptr ? entry->runtime : "unrecognized error code";
}

const char* cudaGetErrorString(int code) {
  const auto* entry = maya::session::error_text(code);
  return entry != nullptr ? entry->text : "unrecognized error code";
}

}  // extern "C"
