// cuFile on a machine without GPUDirect Storage: the driver is absent, and every call says so.
#include <sys/types.h>

#include <cerrno>

#include "abi/cufile.h"

using namespace maya::abi;

namespace {
constexpr CUfileError kAbsent{CU_FILE_DRIVER_NOT_INITIALIZED, 0};
}

extern "C" {

CUfileError cuFileDriverOpen() { return kAbsent; }
CUfileError cuFileDriverClose() { return kAbsent; }
CUfileError cuFileHandleRegister(CUfileHandle_t*, CUfileDescr_t*) { return kAbsent; }
void cuFileHandleDeregister(CUfileHandle_t) {}
CUfileError cuFileBufRegister(const void*, std::size_t, int) { return kAbsent; }
CUfileError cuFileBufDeregister(const void*) { return kAbsent; }
// Failures of the transfer calls are negative codes.
ssize_t cuFileRead(CUfileHandle_t, void*, std::size_t, off_t, off_t) {
  return -CU_FILE_DRIVER_NOT_INITIALIZED;
}
ssize_t cuFileWrite(CUfileHandle_t, const void*, std::size_t, off_t, off_t) {
  return -CU_FILE_DRIVER_NOT_INITIALIZED;
}

}  // extern "C"
