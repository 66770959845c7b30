// Contexts, parameters and the small info objects.
#include "shim/cusolver/factor.h"

using namespace maya::abi;
using namespace maya::shim::cusolver;

namespace {

struct Jacobi {
  double tolerance{};
  int sweeps{100}, sort{1};
};

template <class T, class... Ignored>
cusolverStatus_t make(T** handle) {
  if (!handle) return CUSOLVER_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<T*>(new Handle);
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T>
cusolverStatus_t drop(T* handle) {
  if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
  delete as(handle);
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T>
Jacobi* jacobi(T* info) {
  return reinterpret_cast<Jacobi*>(info);
}

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) { return make(handle); }
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) { return drop(handle); }
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, CUstream_st* stream) {
  if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
  as(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, CUstream_st** stream) {
  if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!stream) return CUSOLVER_STATUS_INVALID_VALUE;
  *stream = static_cast<CUstream_st*>(as(handle)->stream);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpCreate(cusolverSpHandle_t* handle) { return make(handle); }
cusolverStatus_t cusolverSpDestroy(cusolverSpHandle_t handle) { return drop(handle); }
cusolverStatus_t cusolverSpSetStream(cusolverSpHandle_t handle, CUstream_st* stream) {
  if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
  as(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpGetStream(cusolverSpHandle_t handle, CUstream_st** stream) {
  if (!handle || !stream) return CUSOLVER_STATUS_INVALID_VALUE;
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
  *value = version[static_cast<int>(type) % 3];
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

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) { return make(params); }
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) { return drop(params); }
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t,
                                         cusolverAlgMode_t) {
  return params ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle,
                                                cusolverDeterministicMode_t) {
  return handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

#define MAYA_JACOBI(NAME, LOWER)                                                            \
  cusolverStatus_t cusolverDnCreate##NAME##Info(LOWER##Info_t* info) {                      \
    if (!info) return CUSOLVER_STATUS_INVALID_VALUE;                                        \
    *info = reinterpret_cast<LOWER##Info_t>(new Jacobi);                                    \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnDestroy##NAME##Info(LOWER##Info_t info) {                      \
    delete jacobi(info);                                                                    \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetTolerance(LOWER##Info_t info, double tolerance) { \
    if (!info) return CUSOLVER_STATUS_INVALID_VALUE;                                        \
    jacobi(info)->tolerance = tolerance;                                                    \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetMaxSweeps(LOWER##Info_t info, int sweeps) {       \
    if (!info) return CUSOLVER_STATUS_INVALID_VALUE;                                        \
    jacobi(info)->sweeps = sweeps;                                                          \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##SetSortEig(LOWER##Info_t info, int sort) {           \
    if (!info) return CUSOLVER_STATUS_INVALID_VALUE;                                        \
    jacobi(info)->sort = sort;                                                              \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##GetResidual(cusolverDnHandle_t, LOWER##Info_t info,  \
                                                   double* residual) {                      \
    if (!info || !residual) return CUSOLVER_STATUS_INVALID_VALUE;                           \
    *residual = 0;                                                                          \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }                                                                                         \
  cusolverStatus_t cusolverDnX##LOWER##GetSweeps(cusolverDnHandle_t, LOWER##Info_t info,    \
                                                 int* sweeps) {                             \
    if (!info || !sweeps) return CUSOLVER_STATUS_INVALID_VALUE;                             \
    *sweeps = std::min(jacobi(info)->sweeps, 10);                                           \
    return CUSOLVER_STATUS_SUCCESS;                                                         \
  }
MAYA_JACOBI(Syevj, syevj)
MAYA_JACOBI(Gesvdj, gesvdj)

}  // extern "C"
