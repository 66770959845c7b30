// What a generated entry point is. tools/gen/generate.py writes one macro use per function and nothing else.
//
// A stub ignores its arguments: in the C calling conventions we run on the caller cleans up, so a function without parameters can stand in for
// one with any. Only the way the result travels matters, hence the return type in each use.
//
//   MAYA_UNSUPPORTED     counts and names the call, returns the library's "not supported"
//   MAYA_HARMLESS        does nothing, returns a value that is right when nothing is done
//   …_VOID               the same without a result
//   MAYA_PENDING…        stands in for a body in src/shim/<library> that is not written: weak, so a body replaces it
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

#define MAYA_UNSUPPORTED(name, type, ...)                         \
  extern "C" type name() {                                        \
    static unsigned seen = 0;                                     \
    maya_unimplemented(MAYA_SHIM_LIBRARY, #name, &seen);          \
    return type __VA_ARGS__;                                      \
  }
#define MAYA_UNSUPPORTED_VOID(name)                               \
  extern "C" void name() {                                        \
    static unsigned seen = 0;                                     \
    maya_unimplemented(MAYA_SHIM_LIBRARY, #name, &seen);          \
  }
// A large struct comes back through memory whose address the caller passes first and expects returned.
#define MAYA_UNSUPPORTED_STRUCT(name)                             \
  extern "C" void* name(void* result) {                           \
    static unsigned seen = 0;                                     \
    maya_unimplemented(MAYA_SHIM_LIBRARY, #name, &seen);          \
    return result;                                                \
  }
#define MAYA_HARMLESS(name, type, ...) \
  extern "C" type name() { return type __VA_ARGS__; }
#define MAYA_HARMLESS_VOID(name) \
  extern "C" void name() {}

#define MAYA_PENDING(name, type, ...)       \
  extern "C" __attribute__((weak)) type name(); \
  MAYA_UNSUPPORTED(name, type, __VA_ARGS__)
#define MAYA_PENDING_VOID(name)             \
  extern "C" __attribute__((weak)) void name(); \
  MAYA_UNSUPPORTED_VOID(name)
#define MAYA_PENDING_STRUCT(name)           \
  extern "C" __attribute__((weak)) void* name(void* result); \
  MAYA_UNSUPPORTED_STRUCT(name)
