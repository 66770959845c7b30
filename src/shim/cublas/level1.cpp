// Vectors: dot, norms, axpy, scal, copy, swap, rotations, and their Ex forms.
#include <cstring>

#include "session/host_memory.h"
#include "shim/cublas/letters.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using namespace maya;

namespace {

// Reductions give one element: zero in host memory (what a computed value reads as), unknown in
// device memory.
cublasStatus_t reduce(Handle& own, const char* name, DType type, std::int64_t n, int vectors,
                      void* result, DType result_type, ReduceKind kind, int empty_or_first = 0) {
  if (!result) return CUBLAS_STATUS_INVALID_VALUE;
  std::size_t size = static_cast<std::size_t>(shim::bytes_of(result_type, 1));
  bool host = own.pointer_mode == CUBLAS_POINTER_MODE_HOST;
  if (host && !session::mapped_scalar(result, size)) return CUBLAS_STATUS_INVALID_VALUE;
  if (host) {
    std::memset(result, 0, size);
    if (kind == ReduceKind::argmax && n > 0)
      std::memcpy(result, &empty_or_first, sizeof empty_or_first);
  }
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  Reduction work;
  work.inputs = n * vectors, work.outputs = 1;
  work.in = type, work.out = result_type, work.kind = kind;
  return launch(own, name, work, result_type, {host ? nullptr : result, 1});
}

cublasStatus_t map(Handle& own, const char* name, DType type, std::int64_t n, int inputs,
                   int outputs, int flops, std::int64_t stride, void* target) {
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  return launch(own, name, pointwise(type, n, inputs, outputs, flops, stride != 1), type,
                {target, 1, n, stride});
}

}  // namespace

extern "C" {

#define MAYA_DOT(FUNCTION, L, SUFFIX, I)                                                           \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, I n, const void*, I, const void*, \
                                          I, void* result) {                                       \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return reduce(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, n, 2, result, kLetter##L,          \
                  ReduceKind::sum);                                                                \
  }
MAYA_DOT(Sdot, S, _v2, int)
MAYA_DOT(Sdot, S, _v2_64, std::int64_t)
MAYA_DOT(Ddot, D, _v2, int)
MAYA_DOT(Ddot, D, _v2_64, std::int64_t)
MAYA_DOT(Cdotu, C, _v2, int)
MAYA_DOT(Cdotu, C, _v2_64, std::int64_t)
MAYA_DOT(Cdotc, C, _v2, int)
MAYA_DOT(Cdotc, C, _v2_64, std::int64_t)
MAYA_DOT(Zdotu, Z, _v2, int)
MAYA_DOT(Zdotu, Z, _v2_64, std::int64_t)
MAYA_DOT(Zdotc, Z, _v2, int)
MAYA_DOT(Zdotc, Z, _v2_64, std::int64_t)

#define MAYA_DOT_EX(NAME, I)                                                                      \
  cublasStatus_t NAME(cublasHandle_t handle, I n, const void*, cudaDataType type, I, const void*, \
                      cudaDataType, I, void* result, cudaDataType result_type, cudaDataType) {    \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    return reduce(*own, #NAME, shim::dtype_of(type), n, 2, result, shim::dtype_of(result_type),   \
                  ReduceKind::sum);                                                               \
  }
MAYA_DOT_EX(cublasDotEx, int)
MAYA_DOT_EX(cublasDotEx_64, std::int64_t)
MAYA_DOT_EX(cublasDotcEx, int)
MAYA_DOT_EX(cublasDotcEx_64, std::int64_t)

#define MAYA_NORM(FUNCTION, L, R, KIND, SUFFIX, I)                                                 \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, I n, const void*, I,              \
                                          void* result) {                                          \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return reduce(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, n, 1, result, R, ReduceKind::KIND, \
                  1);                                                                              \
  }
#define MAYA_NORM_BOTH(FUNCTION, L, R, KIND) \
  MAYA_NORM(FUNCTION, L, R, KIND, _v2, int)  \
  MAYA_NORM(FUNCTION, L, R, KIND, _v2_64, std::int64_t)
#define MAYA_INDEX_BOTH(FUNCTION, L)                   \
  MAYA_NORM(FUNCTION, L, DType::i32, argmax, _v2, int) \
  MAYA_NORM(FUNCTION, L, DType::i64, argmax, _v2_64, std::int64_t)
MAYA_NORM_BOTH(Snrm2, S, DType::f32, norm)
MAYA_NORM_BOTH(Dnrm2, D, DType::f64, norm)
MAYA_NORM_BOTH(Scnrm2, C, DType::f32, norm)
MAYA_NORM_BOTH(Dznrm2, Z, DType::f64, norm)
MAYA_NORM_BOTH(Sasum, S, DType::f32, sum)
MAYA_NORM_BOTH(Dasum, D, DType::f64, sum)
MAYA_NORM_BOTH(Scasum, C, DType::f32, sum)
MAYA_NORM_BOTH(Dzasum, Z, DType::f64, sum)
MAYA_INDEX_BOTH(Isamax, S)
MAYA_INDEX_BOTH(Idamax, D)
MAYA_INDEX_BOTH(Icamax, C)
MAYA_INDEX_BOTH(Izamax, Z)
MAYA_INDEX_BOTH(Isamin, S)
MAYA_INDEX_BOTH(Idamin, D)
MAYA_INDEX_BOTH(Icamin, C)
MAYA_INDEX_BOTH(Izamin, Z)

#define MAYA_NRM2_EX(NAME, I)                                                                      \
  cublasStatus_t NAME(cublasHandle_t handle, I n, const void*, cudaDataType type, I, void* result, \
                      cudaDataType result_type, cudaDataType) {                                    \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return reduce(*own, #NAME, shim::dtype_of(type), n, 1, result, shim::dtype_of(result_type),    \
                  ReduceKind::norm);                                                               \
  }
MAYA_NRM2_EX(cublasNrm2Ex, int)
MAYA_NRM2_EX(cublasNrm2Ex_64, std::int64_t)

#define MAYA_AXPY(L, SUFFIX, I)                                                         \
  cublasStatus_t cublas##L##axpy##SUFFIX(cublasHandle_t handle, I n, const void* alpha, \
                                         const void*, I, void* y, I incy) {             \
    MAYA_CUBLAS_ENTER(handle);                                                          \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                     \
    return map(*own, "cublas" #L "axpy" #SUFFIX, kLetter##L, n, 2, 1, 2, incy, y);      \
  }
#define MAYA_SCAL(L, SUFFIX, I)                                                                  \
  cublasStatus_t cublas##L##scal##SUFFIX(cublasHandle_t handle, I n, const void* alpha, void* x, \
                                         I incx) {                                               \
    MAYA_CUBLAS_ENTER(handle);                                                                   \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                              \
    return map(*own, "cublas" #L "scal" #SUFFIX, kLetter##L, n, 1, 1, 1, incx, x);               \
  }
#define MAYA_COPY(L, SUFFIX, I)                                                               \
  cublasStatus_t cublas##L##copy##SUFFIX(cublasHandle_t handle, I n, const void*, I, void* y, \
                                         I incy) {                                            \
    MAYA_CUBLAS_ENTER(handle);                                                                \
    return map(*own, "cublas" #L "copy" #SUFFIX, kLetter##L, n, 1, 1, 0, incy, y);            \
  }
#define MAYA_SWAP(L, SUFFIX, I)                                                                   \
  cublasStatus_t cublas##L##swap##SUFFIX(cublasHandle_t handle, I n, void*, I, void* y, I incy) { \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    return map(*own, "cublas" #L "swap" #SUFFIX, kLetter##L, n, 2, 2, 0, incy, y);                \
  }
#define MAYA_ROT(L, SUFFIX, I)                                                                 \
  cublasStatus_t cublas##L##rot##SUFFIX(cublasHandle_t handle, I n, void*, I, void* y, I incy, \
                                        const void*, const void*) {                            \
    MAYA_CUBLAS_ENTER(handle);                                                                 \
    return map(*own, "cublas" #L "rot" #SUFFIX, kLetter##L, n, 2, 2, 6, incy, y);              \
  }
MAYA_LETTERS_V2(MAYA_AXPY)
MAYA_LETTERS_V2(MAYA_SCAL)
MAYA_LETTERS_V2(MAYA_COPY)
MAYA_LETTERS_V2(MAYA_SWAP)
MAYA_LETTERS_V2(MAYA_ROT)
#define kLetterCs kLetterC
#define kLetterZd kLetterZ
MAYA_V2(MAYA_SCAL, Cs)
MAYA_V2(MAYA_SCAL, Zd)
MAYA_V2(MAYA_ROT, Cs)
MAYA_V2(MAYA_ROT, Zd)

#define MAYA_ROTM(L, SUFFIX, I)                                                                 \
  cublasStatus_t cublas##L##rotm##SUFFIX(cublasHandle_t handle, I n, void*, I, void* y, I incy, \
                                         const void*) {                                         \
    MAYA_CUBLAS_ENTER(handle);                                                                  \
    return map(*own, "cublas" #L "rotm" #SUFFIX, kLetter##L, n, 2, 2, 6, incy, y);              \
  }
MAYA_V2(MAYA_ROTM, S)
MAYA_V2(MAYA_ROTM, D)

// Scalars only: nothing a GPU would spend time on, and the host values stay what the caller had.
#define MAYA_ROTG(L)                                                                       \
  cublasStatus_t cublas##L##rotg_v2(cublasHandle_t handle, void* a, void*, void*, void*) { \
    MAYA_CUBLAS_ENTER(handle);                                                             \
    if (own->pointer_mode == CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_SUCCESS;       \
    return map(*own, "cublas" #L "rotg_v2", kLetter##L, 1, 2, 2, 6, 1, a);                 \
  }
MAYA_ROTG(S)
MAYA_ROTG(D)
MAYA_ROTG(C)
MAYA_ROTG(Z)
#define MAYA_ROTMG(L)                                                                         \
  cublasStatus_t cublas##L##rotmg_v2(cublasHandle_t handle, void*, void*, void*, const void*, \
                                     void* p) {                                               \
    MAYA_CUBLAS_ENTER(handle);                                                                \
    if (own->pointer_mode == CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_SUCCESS;          \
    return map(*own, "cublas" #L "rotmg_v2", kLetter##L, 5, 1, 1, 6, 1, p);                   \
  }
MAYA_ROTMG(S)
MAYA_ROTMG(D)

#define MAYA_EX(SUFFIX, I)                                                                         \
  cublasStatus_t cublasAxpyEx##SUFFIX(cublasHandle_t handle, I n, const void* alpha, cudaDataType, \
                                      const void*, cudaDataType, I, void* y, cudaDataType type,    \
                                      I incy, cudaDataType) {                                      \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    return map(*own, "cublasAxpyEx" #SUFFIX, shim::dtype_of(type), n, 2, 1, 2, incy, y);           \
  }                                                                                                \
  cublasStatus_t cublasScalEx##SUFFIX(cublasHandle_t handle, I n, const void* alpha, cudaDataType, \
                                      void* x, cudaDataType type, I incx, cudaDataType) {          \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    return map(*own, "cublasScalEx" #SUFFIX, shim::dtype_of(type), n, 1, 1, 1, incx, x);           \
  }                                                                                                \
  cublasStatus_t cublasCopyEx##SUFFIX(cublasHandle_t handle, I n, const void*, cudaDataType, I,    \
                                      void* y, cudaDataType type, I incy) {                        \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return map(*own, "cublasCopyEx" #SUFFIX, shim::dtype_of(type), n, 1, 1, 0, incy, y);           \
  }                                                                                                \
  cublasStatus_t cublasSwapEx##SUFFIX(cublasHandle_t handle, I n, void*, cudaDataType, I, void* y, \
                                      cudaDataType type, I incy) {                                 \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return map(*own, "cublasSwapEx" #SUFFIX, shim::dtype_of(type), n, 2, 2, 0, incy, y);           \
  }
MAYA_EX(, int)
MAYA_EX(_64, std::int64_t)

}  // extern "C"
