// Handle and descriptors of cuSPARSE's generic interface.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi/cusparse.h"
#include "maya/op.h"
#include "session/handles.h"
#include "shim/common/element.h"

namespace maya::shim::cusparse {

using namespace maya::abi;

struct Handle {
  static constexpr session::HandleKind kind = session::handle_kind("cusparse Handle");
  void* stream{};
  int pointer_mode{};
};

struct SparseMatrix {
  static constexpr session::HandleKind kind = session::handle_kind("cusparse SparseMatrix");
  int format{};
  std::int64_t rows{}, cols{}, nonzeros{};
  void *offsets{}, *indices{}, *values{};
  int offset_type{}, index_type{}, base{}, type{};
  int batch{1};
  std::int64_t offset_stride{}, value_stride{};
  int fill{}, diagonal{};
};

struct DenseMatrix {
  static constexpr session::HandleKind kind = session::handle_kind("cusparse DenseMatrix");
  std::int64_t rows{}, cols{1}, ld{};
  void* values{};
  int type{}, order{CUSPARSE_ORDER_COL};
  int batch{1};
  std::int64_t stride{};
};

struct SparseVector {
  static constexpr session::HandleKind kind = session::handle_kind("cusparse SparseVector");
  std::int64_t size{}, nonzeros{};
  void *indices{}, *values{};
  int index_type{}, base{}, type{};
};

struct MatrixTraits {
  static constexpr session::HandleKind kind = session::handle_kind("cusparse MatrixTraits");
  int type{}, fill{}, diagonal{}, base{};
};

// nullptr for what is no living descriptor of that kind.
template <class Own>
Own* as(const void* descriptor) {
  return session::find_handle<Own>(descriptor);
}

template <class Own, class T>
cusparseStatus_t make(T** descriptor, const Own& value) {
  if (!descriptor) return CUSPARSE_STATUS_INVALID_VALUE;
  *descriptor = static_cast<T*>(session::make_handle<Own>(value));
  return *descriptor ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

template <class Own>
cusparseStatus_t drop(const void* descriptor) {
  return session::drop_handle<Own>(descriptor) ? CUSPARSE_STATUS_SUCCESS
                                               : CUSPARSE_STATUS_INVALID_VALUE;
}

inline cusparseStatus_t status_of(int cuda_error) {
  return cuda_error ? CUSPARSE_STATUS_EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
}

#define MAYA_CUSPARSE_ENTER(handle)                                           \
  maya::session::Call maya_call;                                              \
  auto* own = maya::shim::cusparse::as<maya::shim::cusparse::Handle>(handle); \
  if (!own) return maya::abi::CUSPARSE_STATUS_NOT_INITIALIZED

}  // namespace maya::shim::cusparse
