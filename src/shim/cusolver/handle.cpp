// Contexts, parameters and the small info objects.
#include "shim/cusolver/factor.h"

using namespace maya::abi;
using namespace maya::shim::cusolver;

namespace {

struct Parameters {
  static constexpr maya::session::HandleKind kind =
      maya::session::handle_kind("cusolver parameters");
};

struct Jacobi {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("cusolver jacobi");
  double tolerance{};
  int sweeps{100}, sort{1};
};

template <class Own = Handle, class T>
cusolverStatus_t make(T** handle) {
  if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *handle = static_cast<T*>(maya::session::make_handle<Own>());
  return *handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
template <class Own = Handle>
cusolverStatus_t drop(const void* handle) {
  return maya::session::drop_handle<Own>(handle) ? CUSOLVER_STATUS_SUCCESS
                                                 : CUSOLVER_STATUS_NOT_INITIALIZED;
}
Jacobi* jacobi(const void* info) { return maya::session::find_handle<Jacobi>(info); }

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) { return make(handle); }
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) { return drop(handle); }
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, CUstream_st* stream) {
  if (!as(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  as(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, CUstream_st** stream) {
  if (!as(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!stream) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = static_cast<CUstream_st*>(as(handle)->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpCreate(cusolverSpHandle_t* handle) { return make(handle); }
cusolverStatus_t cusolverSpDestroy(cusolverSpHandle_t handle) { return drop(handle); }
cusolverStatus_t cusolverSpSetStream(cusolverSpHandle_t handle, CUstream_st* stream) {
  if (!as(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  as(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpGetStream(cusolverSpHandle_t handle, CUstream_st** stream) {
  if (!as(handle) || !stream) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = static_cast<CUstream_st*>(as(handle)->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUSOLVER_STATUS_INVALID_VALUE;
#if MAYA_CUDA_MAJOR >= 13
  const int version[] = {12, 1, 0};
#else
  const int version[] = {11, 7, 5};
#endif
  *value = version[static_cast<unsigned>(type) % 3];
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetVersion(int* version) {
  if (!version) return CUSOLVER_STATUS_INVALID_VALUE;
#if MAYA_CUDA_MAJOR >= 13
  *version = 12100;
#else
  *version = 11705;
#endif
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
  return make<Parameters>(params);
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
  return drop<Parameters>(params);
}
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t,
                                         cusolverAlgMode_t) {
  return maya::session::find_handle<Parameters>(params) ? CUSOLVER_STATUS_SUCCESS
                                                        : CUSOLVER_STATUS_INVALID_VALUE;
}
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle,
                                                cusolverDeterministicMode_t) {
  return as(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

#define MAYA_JACOBI(NAME, LOWER)                                                            \
  cusolverStatus_t cusolverDnCreate##NAME##Info(LOWER##Info_t* info) {                      \
    return make<Jacobi>(info);                                                              \
  }                                                                                         \
  cusolverStatus_t cusolverDnDestroy##NAME##Info(LOWER##Info_t info) {                      \
    return drop<Jacobi>(info);                                                              \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetTolerance(LOWER##Info_t info, double tolerance) { \
    if (!jacobi(info)) return CUSOLVER_STATUS_INVALID_VALUE;                                \
    jacobi(info)->tolerance = tolerance;                                                    \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetMaxSweeps(LOWER##Info_t info, int sweeps) {       \
    if (!jacobi(info)) return CUSOLVER_STATUS_INVALID_VALUE;                                \
    jacobi(info)->sweeps = sweeps;                                                          \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetSortEig(LOWER##Info_t info, int sort) {           \
    if (!jacobi(info)) return CUSOLVER_STATUS_INVALID_VALUE;                                \
    jacobi(info)->sort = sort;                                                              \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##GetResidual(cusolverDnHandle_t, LOWER##Info_t info,  \
                                                   double* residual) {                      \
    if (!jacobi(info) || !residual) return CUSOLVER_STATUS_INVALID_VALUE;                   \
    *residual = 0;                                                                          \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##GetSweeps(cusolverDnHandle_t, LOWER##Info_t info,    \
                                                 int* sweeps) {                             \
    if (!jacobi(info) || !sweeps) return CUSOLVER_STATUS_INVALID_VALUE;                     \
    *sweeps = std::min(jacobi(info)->sweeps, 10);                                           \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }
MAYA_JACOBI(Syevj, syevj)
MAYA_JACOBI(Gesvdj, gesvdj)

}  // extern "C"
