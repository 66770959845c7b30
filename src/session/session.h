// The one virtual device of this process: the manual for whoever writes an entry point.
//
// Emulated libraries see the device through this header and its neighbours, and nothing else of the
// session (tests/e2e/test_layers.py):
//
//   session.h         calls, the current device, work of libraries, streams, events, memory, copies
//   kernels.h         modules, functions and their launches
//   graphs.h          stream capture and CUDA graphs
//   virtual_memory.h  cuMemCreate, cuMemMap and relatives; memory shared between processes
//   communicators.h   ranks that communicate: NCCL's communicators, collectives, messages
//   machine.h         what the device, its node and the cluster answer when asked about themselves
//   handles.h         the table behind library handles (cublasHandle_t, …)
//   host_memory.h     whether an address that a program passes can be read
//   observation.h     the device's timeline, for a profiler
//
// Every entry point that does something looks the same: it checks its arguments as documented,
// makes one call into the session and returns the code.
//
// clang-format off
//   extern "C" cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, …) {
//     session::Call call;                               // host time: what the program did meanwhile
//     if (find(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
//     if (m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
//     Gemm gemm{.m = m, .n = n, .k = k};
//     return status(session::submit(stream_of(handle), gemm, "cublasSgemm_v2",
//                                   {reads(a, a_bytes), reads(b, b_bytes), writes(c, c_bytes)}));
//   }
// clang-format on
//
// Handles (streams, events, graphs, functions, pools, …) are passed as the program passes them, as
// void*. They are looked up, never dereferenced: a destroyed, foreign or made-up one is an error
// code. Stream handles may also be 0 and 1 (the legacy default stream of the current device) and 2
// (the thread's own default stream).
//
// Return codes are CUDA's numbers, which runtime (cudaError_t) and driver (CUresult) share; names
// are in namespace code. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "maya/catalog.h"
#include "maya/op.h"
#include "maya/trace.h"

#define MAYA_EXPORT __attribute__((visibility("default")))

namespace maya::session {

// Codes ------------------------------------------------------------------------------------------

namespace code {
inline constexpr int success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3,
                     invalid_configuration = 9, invalid_pitch = 12, invalid_symbol = 13,
                     invalid_direction = 21, missing_configuration = 52,
                     invalid_device_function = 98, no_device = 100, invalid_device = 101,
                     invalid_image = 200, invalid_context = 201, no_kernel_image = 209,
                     unsupported_limit = 215, invalid_source = 300, file_not_found = 301,
                     invalid_handle = 400, not_found = 500, not_ready = 600,
                     launch_out_of_resources = 701, peer_already_enabled = 704,
                     peer_not_enabled = 705, host_memory_already_registered = 712,
                     host_memory_not_registered = 713, not_permitted = 800, not_supported = 801,
                     capture_unsupported = 900, capture_invalidated = 901, capture_merge = 902,
                     capture_unmatched = 903, capture_unjoined = 904, capture_isolation = 905,
                     capture_implicit = 906, captured_event = 907, capture_wrong_thread = 908,
                     graph_update_failure = 910;
}

// Calls ------------------------------------------------------------------------------------------

// Scope of one intercepted call. Takes the thread's CPU time since the previous call as host time
// of the next record, and keeps Maya's own time out of it. Cheap (tens of nanoseconds); nests.
class MAYA_EXPORT Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

// Whether there is a device at all: success, no_device, or not_initialized in a process that was
// forked after the device was used.
MAYA_EXPORT int ready();
// The same for a call that uses the device: the first one begins the recording.
MAYA_EXPORT int touch();
// Whether the device has been used: a context exists.
MAYA_EXPORT bool context_exists();

// Something went wrong that the user should know: counted, named once with MAYA_LOG=warn, shown in
// the prediction. `what` is a short stable phrase.
MAYA_EXPORT void warn(const char* what);
// A version the program was told or built with ("cudnn" → "9.26.0"), for the recording's identity.
MAYA_EXPORT void note_version(const char* library, std::string_view version);

// The calling thread's device and errors ---------------------------------------------------------

MAYA_EXPORT int device_count();
MAYA_EXPORT int current_device();
// invalid_device if there is no such device.
MAYA_EXPORT int check_device(int device);
// Makes a device current. `device` has been checked.
MAYA_EXPORT void use_device(int device);

// The runtime remembers a thread's last error (cudaGetLastError).
MAYA_EXPORT void remember_error(int code);
MAYA_EXPORT int last_error(bool forget);

// The emulated GPU; loads settings on first use.
MAYA_EXPORT const catalog::Gpu& gpu();

// Work of libraries ------------------------------------------------------------------------------

// A range of device memory that work reads or writes; bytes 0: the rest of the allocation.
struct Touch {
  const void* address{};
  std::uint64_t bytes{};
  bool write{};
};
inline Touch reads(const void* address, std::uint64_t bytes) { return {address, bytes, false}; }
inline Touch writes(const void* address, std::uint64_t bytes) { return {address, bytes, true}; }

// Puts work on a stream. `name` is the library function, a string literal. What `touched` says is
// written becomes unknown. While the stream captures, the work becomes a graph node instead.
MAYA_EXPORT int submit(void* stream, const Work& work, const char* name,
                       std::initializer_list<Touch> touched = {});

// How long work would take on the emulated GPU, in nanoseconds, for heuristics and benchmark-mode
// answers (cudnnFind*, cublasLt heuristics, autotuners). Same estimator as the prediction's.
MAYA_EXPORT double modelled_ns(const Work& work, const char* name);

// Ranges for NVTX. Return values as NVTX documents (depth).
MAYA_EXPORT int range_push(const char* name);
MAYA_EXPORT int range_pop();
MAYA_EXPORT void mark(const char* name);

// Streams ----------------------------------------------------------------------------------------

// Work on one stream runs in order. A stream waits for the legacy default stream and the other way
// round, unless it was created with flag 1 (non-blocking).
MAYA_EXPORT int stream_create(void*& stream, unsigned flags, int priority);
MAYA_EXPORT int stream_destroy(void* stream);
MAYA_EXPORT int stream_synchronize(void* stream);
// not_ready while work is pending (progress.h says what that means where nothing executes).
MAYA_EXPORT int stream_query(void* stream);
MAYA_EXPORT int stream_wait_event(void* stream, void* event, unsigned flags);
MAYA_EXPORT int stream_host_function(void* stream, void (*function)(void*), void* data);
MAYA_EXPORT int device_synchronize();

struct StreamProperties {
  int device{}, priority{};
  unsigned flags{};
  std::uint64_t id{};  // as cudaStreamGetId says it
};
MAYA_EXPORT int stream_properties(void* stream, StreamProperties& properties);
// For cublasSetStream and friends.
MAYA_EXPORT bool valid_stream(void* stream);
MAYA_EXPORT bool capturing(void* stream);

// Events -----------------------------------------------------------------------------------------

MAYA_EXPORT int event_create(void*& event, unsigned flags);
MAYA_EXPORT int event_destroy(void* event);
MAYA_EXPORT int event_record(void* event, void* stream, unsigned flags = 0);
MAYA_EXPORT int event_synchronize(void* event);
MAYA_EXPORT int event_query(void* event);
MAYA_EXPORT int event_elapsed(float* milliseconds, void* start, void* end);
// A number that stands for an interprocess event in other processes.
MAYA_EXPORT int event_export(void* event, std::uint32_t& number);

// Device memory ----------------------------------------------------------------------------------

using trace::MemoryKind;

MAYA_EXPORT int allocate(void** address, std::uint64_t bytes, MemoryKind kind);
// For a library's own buffers: also while a graph is captured.
MAYA_EXPORT int take(void** address, std::uint64_t bytes, MemoryKind kind);
MAYA_EXPORT int release(void* address);
MAYA_EXPORT int memory_info(std::size_t* free, std::size_t* total);  // of the current device
MAYA_EXPORT std::uint64_t memory_total(int device);
MAYA_EXPORT std::uint64_t memory_used(int device);

// In stream order, from the current memory pool of the stream's device or from another one.
MAYA_EXPORT int allocate_async(void** address, std::uint64_t bytes, void* stream);
MAYA_EXPORT int allocate_from_pool(void** address, std::uint64_t bytes, void* pool, void* stream);
MAYA_EXPORT int release_async(void* address, void* stream);
MAYA_EXPORT int pool_create(void*& pool, int device);
MAYA_EXPORT int pool_destroy(void* pool);
MAYA_EXPORT bool valid_pool(void* pool);
MAYA_EXPORT int pool_of_device(int device, bool is_default, void*& pool);
MAYA_EXPORT int use_pool(int device, void* pool);
// Attributes by the numbers that cudaMemPoolAttr and CUmemPool_attribute share.
MAYA_EXPORT int pool_attribute(void* pool, int attribute, void* value);
MAYA_EXPORT int set_pool_attribute(void* pool, int attribute, const void* value);
MAYA_EXPORT int pool_trim(void* pool, std::uint64_t keep);

// Pinned memory of the host, which kernels see under the same address.
MAYA_EXPORT int allocate_host(void** address, std::uint64_t bytes);
MAYA_EXPORT int release_host(void* address);
MAYA_EXPORT int register_host(void* address, std::uint64_t bytes);
MAYA_EXPORT int unregister_host(void* address);

// What is behind an address.
enum class Where : std::uint8_t { device, managed, pinned, pageable };
struct Pointer {
  Where where{Where::pageable};
  bool allocated{};               // false: device memory that nobody has, or pageable memory
  int device{};                   // of device and managed memory
  std::uint64_t base{}, bytes{};  // of the allocation
  std::uint64_t id{};             // unique among allocations of device memory
};
MAYA_EXPORT Pointer pointer(const void* address);
MAYA_EXPORT bool is_device_pointer(const void* address);
MAYA_EXPORT bool is_pinned(const void* address);

// Copies -----------------------------------------------------------------------------------------

// Rows of `width` bytes; height and depth above 1 have pitches. Addresses decide the direction.
struct Area {
  void* to{};
  const void* from{};
  std::uint64_t width{}, height{1}, depth{1};
  std::uint64_t to_pitch{}, from_pitch{}, to_slice{}, from_slice{};
};
MAYA_EXPORT int copy(const Area& area, void* stream, bool async);
MAYA_EXPORT int fill(void* to, std::uint64_t pitch, unsigned value, std::uint32_t element,
                     std::uint64_t width, std::uint64_t height, void* stream, bool async);

// Host reads of device memory by a library (e.g. cublasSdot with a host result pointer):
// copies known bytes, zeros for unknown ones; returns true if all were known.
MAYA_EXPORT bool read_device(void* to, const void* from, std::size_t bytes);
// Device memory gets a value the library computes on the host (small results, workspaces' headers).
MAYA_EXPORT void write_device(void* to, const void* from, std::size_t bytes);
// The same in stream order (cuStreamWriteValue32 and relatives).
MAYA_EXPORT int write_on_stream(void* stream, void* to, const void* from, std::size_t bytes);

}  // namespace maya::session

// Counts a call of a function we have no body for. `seen` is a static of the stub. Returns 0.
extern "C" MAYA_EXPORT long maya_unimplemented(const char* library, const char* function,
                                               unsigned* seen);
