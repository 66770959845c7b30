// cuFFT: plans by number, transforms as ops.
#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "abi/cufft.h"
#include "session/session.h"
#include "shim/common/element.h"

using namespace maya::abi;
using namespace maya;
using maya::shim::bytes_of;

namespace {

struct Plan {
  Fft work;
  bool made{};
  void* stream{};
  void* area{};
  std::size_t workspace{};
  std::int64_t output_elements{};
  DType output{DType::c64};
};

std::mutex mutex;
std::unordered_map<int, std::shared_ptr<Plan>>& plans() {
  static auto* all = new std::unordered_map<int, std::shared_ptr<Plan>>;
  return *all;
}
std::shared_ptr<Plan> find(int handle) {
  std::lock_guard lock(mutex);
  auto found = plans().find(handle);
  return found == plans().end() ? nullptr : found->second;
}

struct Kind {
  bool real_in{}, real_out{};
  DType complex_type{DType::c64};
};
bool kind_of(int type, Kind* kind) {
  switch (type) {
    case CUFFT_R2C:
      *kind = {true, false, DType::c64};
      return true;
    case CUFFT_C2R:
      *kind = {false, true, DType::c64};
      return true;
    case CUFFT_C2C:
      *kind = {false, false, DType::c64};
      return true;
    case CUFFT_D2Z:
      *kind = {true, false, DType::c128};
      return true;
    case CUFFT_Z2D:
      *kind = {false, true, DType::c128};
      return true;
    case CUFFT_Z2Z:
      *kind = {false, false, DType::c128};
      return true;
    default:
      return false;
  }
}

cufftResult make(int handle, int rank, const long long* n, long long batch, const Kind& kind,
                 std::size_t* size) {
  session::Call call;
  auto plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_SIZE;
  long long elements = 1;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
    elements *= n[i];
  }
  plan->work.n = elements, plan->work.batch = batch, plan->work.rank = rank;
  plan->work.dtype = kind.complex_type;
  plan->work.real = kind.real_in || kind.real_out;
  long long half = elements / n[rank - 1] * (n[rank - 1] / 2 + 1);
  plan->output_elements = (kind.real_in ? half : elements) * batch;
  plan->output = kind.real_out ? (kind.complex_type == DType::c128 ? DType::f64 : DType::f32)
                               : kind.complex_type;
  // One more copy of the data, which is what cuFFT takes for anything but small powers of two.
  plan->workspace = static_cast<std::size_t>(bytes_of(kind.complex_type, elements * batch));
  plan->made = true;
  if (size) *size = plan->workspace;
  return CUFFT_SUCCESS;
}

cufftResult execute(int handle, const char* name, void* to) {
  session::Call call;
  auto plan = find(handle);
  if (!plan || !plan->made) return CUFFT_INVALID_PLAN;
  if (!to) return CUFFT_INVALID_VALUE;
  auto bytes = static_cast<std::uint64_t>(bytes_of(plan->output, plan->output_elements));
  return session::submit(plan->stream, plan->work, name, {session::writes(to, bytes)})
             ? CUFFT_EXEC_FAILED
             : CUFFT_SUCCESS;
}

template <class I>
cufftResult many(int handle, int rank, const I* n, int type, long long batch, std::size_t* size) {
  Kind kind;
  if (!kind_of(type, &kind)) return CUFFT_INVALID_TYPE;
  if (!n || rank < 1 || rank > 3) return CUFFT_INVALID_SIZE;
  std::array<long long, 3> dims{};
  for (int i = 0; i < rank; ++i) dims[static_cast<std::size_t>(i)] = n[i];
  return make(handle, rank, dims.data(), batch, kind, size);
}

cufftResult planned(int* handle, int rank, const int* n, int type, int batch);

}  // namespace

extern "C" {

cufftResult cufftCreate(int* handle) {
  session::Call call;
  if (!handle) return CUFFT_INVALID_VALUE;
  static int next = 1;
  std::lock_guard lock(mutex);
  plans()[*handle = next++] = std::make_shared<Plan>();
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(int handle) {
  session::Call call;
  std::lock_guard lock(mutex);
  return plans().erase(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftGetVersion(int* version) {
  if (!version) return CUFFT_INVALID_VALUE;
#if MAYA_CUDA_MAJOR >= 13
  *version = 12200;
#else
  *version = 11400;
#endif
  return CUFFT_SUCCESS;
}
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  int version = 0;
  if (!value || cufftGetVersion(&version) != CUFFT_SUCCESS) return CUFFT_INVALID_VALUE;
  *value = type == MAJOR_VERSION   ? version / 1000
           : type == MINOR_VERSION ? version % 1000 / 100
                                   : version % 100;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(int handle, CUstream_st* stream) {
  auto plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(int handle, int) {
  return find(handle) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetWorkArea(int handle, void* area) {
  auto plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->area = area;
  return CUFFT_SUCCESS;
}
cufftResult cufftGetSize(int handle, std::size_t* size) {
  auto plan = find(handle);
  if (!plan || !plan->made) return CUFFT_INVALID_PLAN;
  if (!size) return CUFFT_INVALID_VALUE;
  *size = plan->workspace;
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlan1d(int handle, int n, cufftType type, int batch, std::size_t* size) {
  return many(handle, 1, &n, type, batch, size);
}
cufftResult cufftMakePlan2d(int handle, int nx, int ny, cufftType type, std::size_t* size) {
  int n[] = {nx, ny};
  return many(handle, 2, n, type, 1, size);
}
cufftResult cufftMakePlan3d(int handle, int nx, int ny, int nz, cufftType type, std::size_t* size) {
  int n[] = {nx, ny, nz};
  return many(handle, 3, n, type, 1, size);
}
cufftResult cufftMakePlanMany(int handle, int rank, int* n, int*, int, int, int*, int, int,
                              cufftType type, int batch, std::size_t* size) {
  return many(handle, rank, n, type, batch, size);
}
cufftResult cufftMakePlanMany64(int handle, int rank, long long* n, long long*, long long,
                                long long, long long*, long long, long long, cufftType type,
                                long long batch, std::size_t* size) {
  return many(handle, rank, n, type, batch, size);
}
cufftResult cufftXtMakePlanMany(int handle, int rank, long long* n, long long*, long long,
                                long long, cudaDataType input, long long*, long long, long long,
                                cudaDataType output, long long batch, std::size_t* size,
                                cudaDataType execution) {
  if (!n) return CUFFT_INVALID_SIZE;
  auto real = [](int type) {
    return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
  };
  if (real(input) && real(output)) return CUFFT_INVALID_TYPE;
  if ((execution == CUDA_C_16F || execution == CUDA_C_16BF) && shim::capability() < 53)
    return CUFFT_INVALID_DEVICE;
  Kind kind{real(input), real(output), execution == CUDA_C_64F ? DType::c128 : DType::c64};
  return make(handle, rank, n, batch, kind, size);
}
cufftResult cufftXtSetWorkArea(int handle, void** area) {
  return area ? cufftSetWorkArea(handle, area[0]) : CUFFT_INVALID_VALUE;
}

// Create and make in one.
cufftResult cufftPlan1d(int* handle, int n, cufftType type, int batch) {
  return planned(handle, 1, &n, type, batch);
}
cufftResult cufftPlan2d(int* handle, int nx, int ny, cufftType type) {
  int n[] = {nx, ny};
  return planned(handle, 2, n, type, 1);
}
cufftResult cufftPlan3d(int* handle, int nx, int ny, int nz, cufftType type) {
  int n[] = {nx, ny, nz};
  return planned(handle, 3, n, type, 1);
}
cufftResult cufftPlanMany(int* handle, int rank, int* n, int*, int, int, int*, int, int,
                          cufftType type, int batch) {
  return planned(handle, rank, n, type, batch);
}

cufftResult cufftXtExec(int handle, void*, void* to, int) {
  return execute(handle, "cufftXtExec", to);
}
cufftResult cufftExecC2C(int handle, void*, void* to, int) {
  return execute(handle, "cufftExecC2C", to);
}
cufftResult cufftExecZ2Z(int handle, void*, void* to, int) {
  return execute(handle, "cufftExecZ2Z", to);
}
cufftResult cufftExecR2C(int handle, void*, void* to) {
  return execute(handle, "cufftExecR2C", to);
}
cufftResult cufftExecD2Z(int handle, void*, void* to) {
  return execute(handle, "cufftExecD2Z", to);
}
cufftResult cufftExecC2R(int handle, void*, void* to) {
  return execute(handle, "cufftExecC2R", to);
}
cufftResult cufftExecZ2D(int handle, void*, void* to) {
  return execute(handle, "cufftExecZ2D", to);
}

}  // extern "C"

namespace {
cufftResult planned(int* handle, int rank, const int* n, int type, int batch) {
  cufftResult result = cufftCreate(handle);
  if (result != CUFFT_SUCCESS) return result;
  std::size_t size = 0;
  return many(*handle, rank, n, type, batch, &size);
}
}  // namespace
