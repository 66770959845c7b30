// Every runtime call ends here: an error is also remembered for cudaGetLastError.
#pragma once

#include "abi/cudart.h"
#include "session/session.h"

namespace maya::cudart {

using abi::cudaError;

inline cudaError result(int code) {
  if (code != 0) [[unlikely]]
    session::remember_error(code);
  return static_cast<cudaError>(code);
}

// Handles are addresses of session objects.
template <class Handle>
void hand_out(Handle* to, void* object) {
  *to = reinterpret_cast<Handle>(object);
}

}  // namespace maya::cudart
