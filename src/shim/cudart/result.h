// Every runtime call ends here: an error is also remembered for cudaGetLastError.
#pragma once

#include "abi/cudart.h"
#include "session/attributes.h"
#include "session/calls.h"
#include "session/session.h"

namespace maya::cudart {

using abi::cudaError;

inline cudaError result(int code) {
  if (code != 0) [[unlikely]]
    session::thread().last_error = code;
  return static_cast<cudaError>(code);
}

// Handles are addresses of session objects.
template <class Handle, class Object>
void hand_out(Handle* to, Object* object) {
  *to = reinterpret_cast<Handle>(object);
}

}  // namespace maya::cudart
