// What a generated entry point is. tools/gen/generate.py writes one macro use per function and
// nothing else.
//
// A stub ignores its arguments: in the C calling conventions we run on the caller cleans up, so a
// function without parameters can stand in for one with any. Only the way the result travels
// matters, hence the return type in each use.
//
// Every stub is weak, so a body in src/shim/<library> replaces it without further ado; the test
// spec_manual_bodies keeps spec/ in step (manual in the spec if and only if there is a body).
//
//   MAYA_UNSUPPORTED     counts and names the call, returns the library's "not supported"
//   MAYA_HARMLESS        does nothing, returns a value that is right when nothing is done
//   MAYA_DATA            a variable
//   …_VOID, …_STRUCT     the same without a result, and with one that travels through memory
#pragma once

extern "C" long maya_unimplemented(const char* library, const char* function, unsigned* seen);

namespace maya::shim {
struct FloatPair {
  float x, y;
};
struct DoublePair {
  double x, y;
};
}  // namespace maya::shim

#define MAYA_WEAK extern "C" __attribute__((weak))
#define MAYA_COUNT(name)    \
  static unsigned seen = 0; \
  maya_unimplemented(MAYA_SHIM_LIBRARY, #name, &seen)

#define MAYA_UNSUPPORTED(name, type, ...) \
  MAYA_WEAK type name() {                 \
    MAYA_COUNT(name);                     \
    return type __VA_ARGS__;              \
  }
#define MAYA_UNSUPPORTED_VOID(name) \
  MAYA_WEAK void name() { MAYA_COUNT(name); }
// The caller passes the address of the result first and expects it back.
#define MAYA_UNSUPPORTED_STRUCT(name)  \
  MAYA_WEAK void* name(void* result) { \
    MAYA_COUNT(name);                  \
    return result;                     \
  }
#define MAYA_HARMLESS(name, type, ...) \
  MAYA_WEAK type name() { return type __VA_ARGS__; }
#define MAYA_HARMLESS_VOID(name) \
  MAYA_WEAK void name() {}
// A variable that a library exports, zeroed.
#define MAYA_DATA(name, bytes)         \
  MAYA_WEAK unsigned char name[bytes]; \
  alignas(16) unsigned char name[bytes] = {};
