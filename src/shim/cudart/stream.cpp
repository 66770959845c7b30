#include "session/graphs.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

extern "C" {

cudaError cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  session::Call call;
  if (stream == nullptr || flags > 1) return result(1);
  void* made = nullptr;
  int error = session::stream_create(made, flags, priority);
  if (error == 0) cudart::hand_out(stream, made);
  return result(error);
}
cudaError cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError cudaStreamDestroy(cudaStream_t stream) {
  session::Call call;
  return result(session::stream_destroy(stream));
}
cudaError cudaStreamSynchronize(cudaStream_t stream) {
  session::Call call;
  return result(session::stream_synchronize(stream));
}
cudaError cudaStreamQuery(cudaStream_t stream) {
  session::Call call;
  return result(session::stream_query(stream));
}
cudaError cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  session::Call call;
  return result(session::stream_wait_event(stream, event, flags));
}

cudaError cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                unsigned) {
  session::Call call;
  struct Bound {
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void* data;
  };
  if (callback == nullptr) return result(1);
  auto* bound = new Bound{callback, stream, data};
  return result(session::stream_host_function(
      stream,
      [](void* p) {
        auto* b = static_cast<Bound*>(p);
        b->callback(b->stream, 0, b->data);
        delete b;
      },
      bound));
}

cudaError cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return result(error);
  if (priority == nullptr) return result(1);
  *priority = stream.priority;
  return cudaSuccess;
}
cudaError cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return result(error);
  if (flags == nullptr) return result(1);
  *flags = stream.flags;
  return cudaSuccess;
}
cudaError cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return result(error);
  if (id == nullptr) return result(1);
  *id = stream.id;
  return cudaSuccess;
}
cudaError cudaStreamGetDevice(cudaStream_t handle, int* device) {
  session::StreamProperties stream;
  if (int error = session::stream_properties(handle, stream)) return result(error);
  if (device == nullptr) return result(1);
  *device = stream.device;
  return cudaSuccess;
}
cudaError cudaStreamSetAttribute(cudaStream_t handle, int, const void*) {
  session::StreamProperties stream;
  return result(session::stream_properties(handle, stream));
}
cudaError cudaStreamAttachMemAsync(cudaStream_t handle, void*, size_t, unsigned) {
  session::StreamProperties stream;
  return result(session::stream_properties(handle, stream));
}

cudaError cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  session::Call call;
  return result(session::capture_begin(stream, mode));
}
cudaError cudaStreamBeginCaptureToGraph(cudaStream_t stream, void* graph, void* const* after,
                                        const void*, size_t count, int mode) {
  session::Call call;
  return result(session::capture_begin_into(stream, mode, graph, after, count));
}
cudaError cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  session::Call call;
  void* made = nullptr;
  int error = session::capture_end(stream, made);
  if (graph != nullptr) cudart::hand_out(graph, made);
  return result(error);
}
cudaError cudaStreamIsCapturing(cudaStream_t stream, int* status) {
  session::CaptureState capture;
  if (status == nullptr) return result(1);
  const int error = session::capture_state(stream, capture);
  *status = capture.status;
  return result(error);
}

}  // extern "C"

namespace {

int capture_info(void* stream, int* status, unsigned long long* id, cudaGraph_t* graph,
                 const cudaGraphNode_t** after, size_t* count) {
  session::CaptureState capture;
  if (status == nullptr) return 1;
  if (int error = session::capture_state(stream, capture)) return error;
  *status = capture.status;
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) cudart::hand_out(graph, capture.graph);
  if (after != nullptr) *after = reinterpret_cast<const cudaGraphNode_t*>(capture.after.data());
  if (count != nullptr) *count = capture.after.size();
  return 0;
}

int update_dependencies(void* stream, void* const* nodes, size_t count, unsigned flags) {
  return session::capture_depend(stream, nodes, count, flags == cudaStreamSetCaptureDependencies);
}

}  // namespace

extern "C" {

cudaError cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int* status, unsigned long long* id,
                                      cudaGraph_t* graph, const cudaGraphNode_t** after,
                                      size_t* count) {
  return result(capture_info(stream, status, id, graph, after, count));
}
cudaError cudaStreamGetCaptureInfo_v3(cudaStream_t stream, int* status, unsigned long long* id,
                                      cudaGraph_t* graph, const cudaGraphNode_t** after,
                                      const cudaGraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return result(capture_info(stream, status, id, graph, after, count));
}

#if MAYA_CUDA_MAJOR >= 13
cudaError cudaStreamGetCaptureInfo(cudaStream_t stream, int* status, unsigned long long* id,
                                   cudaGraph_t* graph, const cudaGraphNode_t** after,
                                   const cudaGraphEdgeData** edges, size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count);
}
cudaError cudaStreamUpdateCaptureDependencies(cudaStream_t stream, void* const* nodes, const void*,
                                              size_t count, unsigned flags) {
  return result(update_dependencies(stream, nodes, count, flags));
}
#else
cudaError cudaStreamGetCaptureInfo(cudaStream_t stream, int* status, unsigned long long* id) {
  return result(capture_info(stream, status, id, nullptr, nullptr, nullptr));
}
cudaError cudaStreamUpdateCaptureDependencies(cudaStream_t stream, void* const* nodes, size_t count,
                                              unsigned flags) {
  return result(update_dependencies(stream, nodes, count, flags));
}
cudaError cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, void* const* nodes,
                                                 const void*, size_t count, unsigned flags) {
  return result(update_dependencies(stream, nodes, count, flags));
}
#endif

cudaError cudaThreadExchangeStreamCaptureMode(int* mode) {
  return result(session::capture_exchange_mode(mode));
}

cudaError cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  session::Call call;
  if (event == nullptr || flags > 7) return result(1);
  void* made = nullptr;
  int error = session::event_create(made, flags);
  if (error == 0) cudart::hand_out(event, made);
  return result(error);
}
cudaError cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError cudaEventDestroy(cudaEvent_t event) {
  session::Call call;
  return result(session::event_destroy(event));
}
cudaError cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  session::Call call;
  return result(session::event_record(event, stream));
}
cudaError cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  session::Call call;
  return result(session::event_record(event, stream, flags));
}
cudaError cudaEventSynchronize(cudaEvent_t event) {
  session::Call call;
  return result(session::event_synchronize(event));
}
cudaError cudaEventQuery(cudaEvent_t event) {
  session::Call call;
  return result(session::event_query(event));
}
cudaError cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  session::Call call;
  return result(session::event_elapsed(milliseconds, start, end));
}
cudaError cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

}  // extern "C"
