#include "abi/cuda.h"
#include "session/graphs.h"
#include "session/session.h"

using namespace maya;
using namespace maya::abi;

extern "C" {

int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  session::Call call;
  if (stream == nullptr) return 1;
  return session::stream_create(*stream, flags, priority);
}
int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
int cuStreamDestroy_v2(void* stream) {
  session::Call call;
  return session::stream_destroy(stream);
}
int cuStreamSynchronize(void* stream) {
  session::Call call;
  return session::stream_synchronize(stream);
}
int cuStreamQuery(void* stream) {
  session::Call call;
  return session::stream_query(stream);
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  session::Call call;
  return session::stream_wait_event(stream, event, flags);
}
int cuStreamGetPriority(void* handle, int* priority) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return error;
  if (priority == nullptr) return 1;
  *priority = stream.priority;
  return 0;
}
int cuStreamGetFlags(void* handle, unsigned* flags) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return error;
  if (flags == nullptr) return 1;
  *flags = stream.flags;
  return 0;
}
int cuStreamGetId(void* handle, unsigned long long* id) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return error;
  if (id == nullptr) return 1;
  *id = stream.id;
  return 0;
}
int cuStreamGetDevice(void* handle, int* device) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return error;
  if (device == nullptr) return 1;
  *device = stream.device;
  return 0;
}
int cuStreamAddCallback(void* stream, void (*callback)(void*, int, void*), void* data, unsigned) {
  session::Call call;
  struct Bound {
    void (*callback)(void*, int, void*);
    void *stream, *data;
  };
  if (callback == nullptr) return 1;
  return session::stream_host_function(
      stream,
      [](void* p) {
        auto* b = static_cast<Bound*>(p);
        b->callback(b->stream, 0, b->data);
        delete b;
      },
      new Bound{callback, stream, data});
}
int cuStreamIsCapturing(void* stream, int* status) {
  session::CaptureState capture;
  if (status == nullptr) return 1;
  const int error = session::capture_state(stream, capture);
  *status = capture.status;
  return error;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  session::Call call;
  return session::capture_begin(stream, mode);
}
int cuStreamEndCapture(void* stream, void** graph) {
  session::Call call;
  void* made = nullptr;
  int error = session::capture_end(stream, made);
  if (graph != nullptr) *graph = made;
  return error;
}
int cuStreamBeginCaptureToGraph(void* stream, void* graph, void* const* after, const void*,
                                size_t count, int mode) {
  session::Call call;
  return session::capture_begin_into(stream, mode, graph, after, count);
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                              void* const** after, size_t* count) {
  session::CaptureState capture;
  if (status == nullptr) return 1;
  if (int error = session::capture_state(stream, capture)) return error;
  *status = capture.status;
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = capture.graph;
  if (after != nullptr) *after = capture.after.data();
  if (count != nullptr) *count = capture.after.size();
  return 0;
}
int cuStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return cuStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}
int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                              void* const** after, const void** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, after, count);
}
int cuStreamUpdateCaptureDependencies(void* stream, void* const* nodes, size_t count,
                                      unsigned flags) {
  return session::capture_depend(stream, nodes, count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}
int cuStreamUpdateCaptureDependencies_v2(void* stream, void* const* nodes, const void*,
                                         size_t count, unsigned flags) {
  return session::capture_depend(stream, nodes, count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}
int cuThreadExchangeStreamCaptureMode(int* mode) { return session::capture_exchange_mode(mode); }

// Memory operations on a stream: a write is ordered work of no duration, a wait is taken as
// satisfied.
int cuStreamWriteValue32_v2(void* handle, CUdeviceptr address, unsigned value, unsigned) {
  session::Call call;
  return session::write_on_stream(handle, reinterpret_cast<void*>(address), &value, sizeof value);
}
int cuStreamWriteValue64_v2(void* handle, CUdeviceptr address, unsigned long long value, unsigned) {
  session::Call call;
  return session::write_on_stream(handle, reinterpret_cast<void*>(address), &value, sizeof value);
}
int cuStreamWaitValue32_v2(void* handle, CUdeviceptr, unsigned, unsigned) {
  session::StreamProperties stream;
  return session::stream_properties(handle, stream);
}
int cuStreamWaitValue64_v2(void* handle, CUdeviceptr, unsigned long long, unsigned) {
  session::StreamProperties stream;
  return session::stream_properties(handle, stream);
}

int cuEventCreate(void** event, unsigned flags) {
  session::Call call;
  if (event == nullptr) return 1;
  return session::event_create(*event, flags);
}
int cuEventDestroy_v2(void* event) {
  session::Call call;
  return session::event_destroy(event);
}
int cuEventRecord(void* event, void* stream) {
  session::Call call;
  return session::event_record(event, stream);
}
int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  session::Call call;
  return session::event_record(event, stream, flags);
}
int cuEventSynchronize(void* event) {
  session::Call call;
  return session::event_synchronize(event);
}
int cuEventQuery(void* event) {
  session::Call call;
  return session::event_query(event);
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  session::Call call;
  return session::event_elapsed(milliseconds, start, end);
}
int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

}  // extern "C"
