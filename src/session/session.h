// The one device of this process, as the entry points of the emulated libraries see it.
//
// Every entry point that does something looks the same:
//
//   extern "C" cublasStatus_t cublasSgemm_v2(...) {
//     session::Call call;                       // host time: what the program did since its last
//     call if (!handle) return NOT_INITIALIZED;      // documented checks Gemm gemm{...}; return
//     status(session::submit(stream_of(handle), gemm, "cublasSgemm_v2", {{a, bytes}, ...}));
//   }
//
// Nothing here throws. Return codes are CUDA's numbers, which runtime (cudaError_t) and driver
// (CUresult) share: 0 success, 1 invalid value, 2 out of memory, 400 invalid handle, …
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "maya/catalog.h"
#include "maya/op.h"

#define MAYA_EXPORT __attribute__((visibility("default")))

namespace maya::session {

// Scope of one intercepted call. Takes the thread's CPU time since the previous call as host time
// of the next record, and keeps Maya's own time out of it. Cheap (tens of nanoseconds); nests.
class MAYA_EXPORT Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

// A range of device memory that work reads or writes; bytes 0: the rest of the allocation.
struct Touch {
  const void* address{};
  std::uint64_t bytes{};
  bool write{};
};
inline Touch reads(const void* address, std::uint64_t bytes) { return {address, bytes, false}; }
inline Touch writes(const void* address, std::uint64_t bytes) { return {address, bytes, true}; }

// Puts work on a stream (a cudaStream_t / CUstream value: 0, 1, 2 or a handle). `name` is the
// library function, a string literal. What `touched` says is written becomes unknown. While the
// stream captures, it becomes a graph node instead.
MAYA_EXPORT int submit(void* stream, const Work& work, const char* name,
                       std::initializer_list<Touch> touched = {});

// Valid stream handle of the current context (0, 1, 2 are). For cublasSetStream and friends.
MAYA_EXPORT bool valid_stream(void* stream);
MAYA_EXPORT bool capturing(void* stream);

// The emulated GPU the calling thread has current; loads settings on first use.
MAYA_EXPORT const catalog::Gpu& gpu();
MAYA_EXPORT int current_device();

// Host reads of device memory by a library (e.g. cublasSdot with a host result pointer):
// copies known bytes, zeros for unknown ones; returns true if all were known.
MAYA_EXPORT bool read_device(void* to, const void* from, std::size_t bytes);
// Device memory gets a value the library computes on the host (small results, workspaces' headers).
MAYA_EXPORT void write_device(void* to, const void* from, std::size_t bytes);
MAYA_EXPORT bool is_device_pointer(const void* address);

// How long work would take on the emulated GPU, in nanoseconds, for heuristics and benchmark-mode
// answers (cudnnFind*, cublasLt heuristics, autotuners). Same estimator as the prediction's.
MAYA_EXPORT double modelled_ns(const Work& work, const char* name);

// A version the program was told or built with ("cudnn" → "9.26.0"), for the recording's identity.
MAYA_EXPORT void note_version(const char* library, std::string_view version);

// Something went wrong that the user should know: counted, named once with MAYA_LOG=warn, shown in
// the prediction. `what` is a short stable phrase.
MAYA_EXPORT void warn(const char* what);

// Ranges for NVTX. Return values as NVTX documents (depth).
MAYA_EXPORT int range_push(const char* name);
MAYA_EXPORT int range_pop();
MAYA_EXPORT void mark(const char* name);

}  // namespace maya::session

// Counts a call of a function we have no body for. `seen` is a static of the stub. Returns 0.
extern "C" MAYA_EXPORT long maya_unimplemented(const char* library, const char* function,
                                               unsigned* seen);
