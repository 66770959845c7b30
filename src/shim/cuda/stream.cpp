#include "abi/cuda.h"
#include "session/calls.h"
#include "session/host_memory.h"

using namespace maya;
using namespace maya::abi;

extern "C" {

int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  session::Call call;
  if (stream == nullptr) return 1;
  session::Stream* made = nullptr;
  int error = session::stream_create(made, flags, priority);
  if (error == 0) *stream = made;
  return error;
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
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  if (priority == nullptr) return 1;
  *priority = stream->priority;
  return 0;
}
int cuStreamGetFlags(void* handle, unsigned* flags) {
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  if (flags == nullptr) return 1;
  *flags = stream->flags;
  return 0;
}
int cuStreamGetId(void* handle, unsigned long long* id) {
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  if (id == nullptr) return 1;
  *id = stream->unique;
  return 0;
}
int cuStreamGetDevice(void* handle, int* device) {
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  if (device == nullptr) return 1;
  *device = stream->device;
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
  std::uint64_t id = 0;
  session::Graph* graph = nullptr;
  return status == nullptr ? 1 : session::capture_status(stream, *status, id, graph);
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  session::Call call;
  return session::capture_begin(stream, mode);
}
int cuStreamEndCapture(void* stream, void** graph) {
  session::Call call;
  session::Graph* made = nullptr;
  int error = session::capture_end(stream, made);
  if (graph != nullptr) *graph = made;
  return error;
}
int cuStreamBeginCaptureToGraph(void* stream, void* graph, void* const* after, const void*,
                                size_t count, int mode) {
  session::Call call;
  session::Graph* into = session::state().graphs.find(graph);
  if (into == nullptr || count > into->nodes.size() ||
      (count > 0 && !session::mapped(after, count * sizeof *after)))
    return 1;
  std::vector<session::Node*> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(session::state().nodes.find(after[i]));
  return session::capture_begin(stream, mode, into, nodes);
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                              void* const** after, size_t* count) {
  std::uint64_t number = 0;
  session::Graph* into = nullptr;
  const std::vector<void*>* nodes = nullptr;
  if (int error = session::capture_info(stream, status, &number, &into, nodes)) return error;
  if (id != nullptr) *id = number;
  if (graph != nullptr) *graph = into;
  if (after != nullptr) *after = nodes->data();
  if (count != nullptr) *count = nodes->size();
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
int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (mode == nullptr || *mode < 0 || *mode > 2) return 1;
  std::swap(session::thread().capture_mode, *mode);
  return 0;
}

// Memory operations on a stream: a write is ordered work of no duration, a wait is taken as
// satisfied.
int cuStreamWriteValue32_v2(void* handle, CUdeviceptr address, unsigned value, unsigned) {
  session::Call call;
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  session::write_device(reinterpret_cast<void*>(address), &value, sizeof value);
  return 0;
}
int cuStreamWriteValue64_v2(void* handle, CUdeviceptr address, unsigned long long value, unsigned) {
  session::Call call;
  session::Stream* stream = nullptr;
  if (int error = session::find_stream(handle, stream)) return error;
  session::write_device(reinterpret_cast<void*>(address), &value, sizeof value);
  return 0;
}
int cuStreamWaitValue32_v2(void* handle, CUdeviceptr, unsigned, unsigned) {
  session::Stream* stream = nullptr;
  return session::find_stream(handle, stream);
}
int cuStreamWaitValue64_v2(void* handle, CUdeviceptr, unsigned long long, unsigned) {
  session::Stream* stream = nullptr;
  return session::find_stream(handle, stream);
}

int cuEventCreate(void** event, unsigned flags) {
  session::Call call;
  if (event == nullptr) return 1;
  session::Event* made = nullptr;
  int error = session::event_create(made, flags);
  if (error == 0) *event = made;
  return error;
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
