// NCCL. Its config struct grows: the caller states its size and version, and only the fields inside
// that size are there.
#pragma once

#include "abi/handles.h"

namespace maya::abi {

struct ncclComm;
struct ncclWindow_vidmem;
using ncclComm_t = ncclComm*;
using ncclWindow_t = ncclWindow_vidmem*;

constexpr int NCCL_UNIQUE_ID_BYTES = 128;
constexpr int NCCL_SPLIT_NOCOLOR = -1;
// Fields that a caller leaves alone.
constexpr int NCCL_UNDEF_INT = -2147483647 - 1;
constexpr unsigned int kNcclConfigMagic = 0xcafebeef;

struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};
static_assert(sizeof(ncclUniqueId) == 128);

enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,
};

enum ncclRedOp_t : int {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  // Operators made by ncclRedOpCreatePreMulSum follow the built-in ones.
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff,
};

enum ncclScalarResidence_t : int { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
};

// Fields in the order in which releases added them. The caller's struct ends after splitShare (48
// bytes, 2.17 on), nvlsCTAs (72, 2.27), nvlinkCentricSched (80, 2.28), numRmaCtx (88, 2.29) or
// nvlsHostMode (120, 2.31): read a field only when `size` covers it.
struct ncclConfig_v23100 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode;
};
static_assert(sizeof(ncclConfig_v23100) == 120);
using ncclConfig_t = ncclConfig_v23100;

constexpr int NCCL_WIN_DEFAULT = 0x00;
constexpr int NCCL_WIN_COLL_SYMMETRIC = 0x01;
constexpr int NCCL_SHRINK_DEFAULT = 0x00;
constexpr int NCCL_SHRINK_ABORT = 0x01;

struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
};
using ncclSimInfo_t = ncclSimInfo_v22200;

// 2.29 on; members may follow.
struct ncclCommProperties_t {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
};

}  // namespace maya::abi
