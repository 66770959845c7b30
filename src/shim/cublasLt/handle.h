// What a cublasLtHandle_t stands for: nothing is kept in one.
#pragma once

#include "session/handles.h"

namespace maya::shim::cublaslt {

struct Handle {
  static constexpr session::HandleKind kind = session::handle_kind("cublasLt");
};

// A cuBLAS handle is accepted wherever a cuBLASLt handle is, as documented.
inline bool alive(const void* handle) {
  return session::find_handle<Handle>(handle) != nullptr ||
         session::object_of(session::handle_kind("cublas"), handle) != nullptr;
}

}  // namespace maya::shim::cublaslt
