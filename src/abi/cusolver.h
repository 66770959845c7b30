// cuSOLVER, dense part: status, handles and modes.
#pragma once

#include "abi/cublas.h"
#include "abi/handles.h"

namespace maya::abi {

struct cusolverDnContext;
struct cusolverSpContext;
struct cusolverDnParams;
struct cusolverDnIRSParams;
struct cusolverDnIRSInfos;
struct syevjInfo;
struct gesvdjInfo;
using cusolverDnHandle_t = cusolverDnContext*;
using cusolverSpHandle_t = cusolverSpContext*;
using cusolverDnParams_t = cusolverDnParams*;
using syevjInfo_t = syevjInfo*;
using gesvdjInfo_t = gesvdjInfo*;

enum cusolverStatus_t : int {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_ARCH_MISMATCH = 4,
  CUSOLVER_STATUS_MAPPING_ERROR = 5,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
  CUSOLVER_STATUS_INTERNAL_ERROR = 7,
  CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
  CUSOLVER_STATUS_NOT_SUPPORTED = 9,
};

enum cusolverEigType_t : int {
  CUSOLVER_EIG_TYPE_1 = 1,
  CUSOLVER_EIG_TYPE_2 = 2,
  CUSOLVER_EIG_TYPE_3 = 3
};
enum cusolverEigMode_t : int { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };
enum cusolverEigRange_t : int {
  CUSOLVER_EIG_RANGE_ALL = 1001,
  CUSOLVER_EIG_RANGE_I = 1002,
  CUSOLVER_EIG_RANGE_V = 1003,
};
enum cusolverAlgMode_t : int { CUSOLVER_ALG_0 = 0, CUSOLVER_ALG_1 = 1, CUSOLVER_ALG_2 = 2 };
enum cusolverDnFunction_t : int { CUSOLVERDN_GETRF = 0, CUSOLVERDN_POTRF = 1 };
enum cusolverDeterministicMode_t : int {
  CUSOLVER_DETERMINISTIC_RESULTS = 1,
  CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS = 2,
};
enum cusolverNorm_t : int {
  CUSOLVER_INF_NORM = 104,
  CUSOLVER_MAX_NORM = 105,
  CUSOLVER_ONE_NORM = 106,
  CUSOLVER_FRO_NORM = 107,
};

}  // namespace maya::abi
