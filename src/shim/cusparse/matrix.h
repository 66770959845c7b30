// Handle and descriptors of cuSPARSE's generic interface.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi/cusparse.h"
#include "maya/op.h"
#include "session/session.h"
#include "shim/common/element.h"

namespace maya::shim::cusparse {

using namespace maya::abi;

struct Handle {
  void* stream{};
  int pointer_mode{};
};

struct SparseMatrix {
  int format{};
  std::int64_t rows{}, cols{}, nonzeros{};
  void *offsets{}, *indices{}, *values{};
  int offset_type{}, index_type{}, base{}, type{};
  int batch{1};
  std::int64_t offset_stride{}, value_stride{};
  int fill{}, diagonal{};
};

struct DenseMatrix {
  std::int64_t rows{}, cols{1}, ld{};
  void* values{};
  int type{}, order{CUSPARSE_ORDER_COL};
  int batch{1};
  std::int64_t stride{};
};

struct SparseVector {
  std::int64_t size{}, nonzeros{};
  void *indices{}, *values{};
  int index_type{}, base{}, type{};
};

struct MatrixTraits {
  int type{}, fill{}, diagonal{}, base{};
};

template <class Own, class T>
Own* as(T* descriptor) {
  return reinterpret_cast<Own*>(const_cast<std::remove_const_t<T>*>(descriptor));
}

template <class Own, class T>
cusparseStatus_t make(T** descriptor, const Own& value) {
  if (!descriptor) return CUSPARSE_STATUS_INVALID_VALUE;
  *reinterpret_cast<Own**>(const_cast<std::remove_const_t<T>**>(descriptor)) = new Own(value);
  return CUSPARSE_STATUS_SUCCESS;
}

inline cusparseStatus_t status_of(int cuda_error) {
  return cuda_error ? CUSPARSE_STATUS_EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
}

#define MAYA_CUSPARSE_ENTER(handle)                                           \
  maya::session::Call maya_call;                                              \
  auto* own = maya::shim::cusparse::as<maya::shim::cusparse::Handle>(handle); \
  if (!own) return maya::abi::CUSPARSE_STATUS_NOT_INITIALIZED

}  // namespace maya::shim::cusparse
