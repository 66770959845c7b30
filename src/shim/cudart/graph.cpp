#include <cstring>
#include <memory>

#include "session/graphs.h"
#include "session/handles.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::NodeType;

namespace {

template <class Parameters>
int keep(void* node, const Parameters& p) {
  return session::node_keep(node, {reinterpret_cast<const char*>(&p), sizeof p});
}

int set(void* node, const cudaKernelNodeParams& p) {
  void* function = session::registered_function(p.func);
  if (function == nullptr) return session::code::invalid_device_function;
  keep(node, p);
  Geometry g{{p.gridDim.x, p.gridDim.y, p.gridDim.z},
             {p.blockDim.x, p.blockDim.y, p.blockDim.z},
             p.sharedMemBytes,
             0};
  return session::node_kernel(node, function, g, p.kernelParams);
}

int set(void* node, const cudaMemcpy3DParms& p) {
  keep(node, p);
  session::Area area{.to = p.dstPtr.ptr,
                     .from = p.srcPtr.ptr,
                     .width = p.extent.width,
                     .height = p.extent.height,
                     .depth = p.extent.depth};
  return session::node_copy(node, area);
}

int set(void* node, const session::Area& area) { return session::node_copy(node, area); }

int set(void* node, const cudaMemsetParams& p) {
  keep(node, p);
  return session::node_fill(node, p.width * p.elementSize * std::max<size_t>(p.height, 1));
}

int set(void* node, const cudaHostNodeParams& p) {
  keep(node, p);
  return session::node_host(node, p.fn, p.userData);
}

int set(void* node, cudaGraphNodeParams& p) {
  switch (p.type) {
    case cudaGraphNodeTypeKernel:
      return set(node, p.kernel);
    case cudaGraphNodeTypeMemcpy:
      return set(node, p.memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return set(node, p.memset);
    case cudaGraphNodeTypeHost:
      return set(node, p.host);
    case cudaGraphNodeTypeGraph: {
      constexpr int give_away = 1;  // cudaGraphChildGraphOwnershipMove
      return session::node_child(node, p.graph.graph, p.graph.ownership == give_away);
    }
    case cudaGraphNodeTypeConditional: {
      auto** graphs = reinterpret_cast<void**>(p.conditional.phGraph_out);
      int error = session::node_bodies(node, p.conditional.size, graphs);
      p.conditional.phGraph_out = reinterpret_cast<cudaGraph_t*>(graphs);
      return error;
    }
    case cudaGraphNodeTypeMemAlloc: {
      std::uint64_t address = 0;
      int error = session::node_allocation(node, p.alloc.bytesize, address);
      p.alloc.dptr = reinterpret_cast<void*>(address);
      return error;
    }
    default:
      return 0;
  }
}

int add(cudaGraphNode_t* out, void* graph, void* const* after, size_t count, NodeType type,
        void*& node) {
  if (out == nullptr) return 1;
  int error = session::node_add(graph, type, after, count, node);
  if (error == 0) cudart::hand_out(out, node);
  return error;
}

template <class Parameters>
cudaError add_with(cudaGraphNode_t* out, void* graph, void* const* after, size_t count,
                   NodeType type, Parameters* p) {
  session::Call call;
  void* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, type, node)) return result(error);
  return result(set(node, *p));
}

cudaError add_tagged(cudaGraphNode_t* out, void* graph, void* const* after, size_t count,
                     cudaGraphNodeParams* p) {
  if (p == nullptr) return result(1);
  return add_with(out, graph, after, count, static_cast<NodeType>(p->type), p);
}

cudaError instantiate(cudaGraphExec_t* out, cudaGraph_t graph) {
  session::Call call;
  if (out == nullptr) return result(1);
  void* made = nullptr;
  int error = session::graph_instantiate(graph, made);
  if (error == 0) cudart::hand_out(out, made);
  return result(error);
}

struct UserObject {
  static constexpr session::HandleKind kind = session::handle_kind("cuda user object");
  void* object{};
  cudaHostFn_t destroy{};
  unsigned references{};
};

}  // namespace

extern "C" {

cudaError cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  session::Call call;
  if (graph == nullptr) return result(1);
  void* made = nullptr;
  int error = session::graph_create(made);
  cudart::hand_out(graph, made);
  return result(error);
}
cudaError cudaGraphDestroy(cudaGraph_t graph) {
  session::Call call;
  return result(session::graph_destroy(graph));
}
#if MAYA_CUDA_MAJOR >= 13
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                           const void*, size_t count, cudaGraphNodeParams* p) {
  return add_tagged(node, graph, after, count, p);
}
#else
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                           size_t count, cudaGraphNodeParams* p) {
  return add_tagged(node, graph, after, count, p);
}
cudaError cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                              const void*, size_t count, cudaGraphNodeParams* p) {
  return add_tagged(node, graph, after, count, p);
}
#endif
cudaError cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaKernelNodeParams* p) {
  return add_with(out, graph, after, count, NodeType::kernel, p);
}
cudaError cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaMemcpy3DParms* p) {
  return add_with(out, graph, after, count, NodeType::memcpy, p);
}
cudaError cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                   size_t count, void* to, const void* from, size_t bytes, int) {
  const session::Area area{.to = to, .from = from, .width = bytes};
  return add_with(out, graph, after, count, NodeType::memcpy, &area);
}
cudaError cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaMemsetParams* p) {
  return add_with(out, graph, after, count, NodeType::memset, p);
}
cudaError cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                               size_t count, const cudaHostNodeParams* p) {
  return add_with(out, graph, after, count, NodeType::host, p);
}
cudaError cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                size_t count) {
  void* node = nullptr;
  return result(add(out, graph, after, count, NodeType::empty, node));
}
cudaError cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                     size_t count, cudaGraph_t child) {
  void* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::graph, node)) return result(error);
  return result(session::node_child(node, child));
}

cudaError cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return result(session::graph_nodes(handle, false, reinterpret_cast<void**>(nodes), count));
}
cudaError cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return result(session::graph_nodes(handle, true, reinterpret_cast<void**>(nodes), count));
}
cudaError cudaGraphNodeGetType(cudaGraphNode_t handle, int* type) {
  return result(session::node_type(handle, type));
}

}  // extern "C"

namespace {
int dependencies(void* handle, cudaGraphNode_t* list, size_t* count) {
  return session::node_dependencies(handle, reinterpret_cast<void**>(list), count);
}
int connect(void* graph, void* const* from, void* const* to, size_t count) {
  return session::graph_connect(graph, from, to, count, true);
}
}  // namespace

extern "C" {

#if MAYA_CUDA_MAJOR >= 13
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* list, void* edges,
                                       size_t* count) {
  if (edges != nullptr && count != nullptr && list != nullptr)
    std::memset(edges, 0, *count * sizeof(cudaGraphEdgeData));
  return result(dependencies(node, list, count));
}
cudaError cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to,
                                   const void*, size_t count) {
  return result(connect(graph, from, to, count));
}
#else
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* list, size_t* count) {
  return result(dependencies(node, list, count));
}
cudaError cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* list, void* edges,
                                          size_t* count) {
  if (edges != nullptr && count != nullptr && list != nullptr)
    std::memset(edges, 0, *count * sizeof(cudaGraphEdgeData));
  return result(dependencies(node, list, count));
}
cudaError cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to,
                                   size_t count) {
  return result(connect(graph, from, to, count));
}
#endif

cudaError cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* p) {
  std::string_view kept;
  if (p == nullptr) return result(1);
  if (int error = session::node_kept(handle, NodeType::kernel, kept)) return result(error);
  *p = {};
  if (kept.size() == sizeof *p) std::memcpy(static_cast<void*>(p), kept.data(), sizeof *p);
  p->kernelParams = session::node_arguments(handle);
  return cudaSuccess;
}
cudaError cudaGraphKernelNodeSetParams(cudaGraphNode_t handle, const cudaKernelNodeParams* p) {
  return result(!session::valid_node(handle) || p == nullptr ? 1 : set(handle, *p));
}
cudaError cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t handle,
                                           const cudaKernelNodeParams* p) {
  session::Call call;
  if (!session::valid_executable(exec) || !session::valid_node(handle) || p == nullptr)
    return result(1);
  if (int error = set(handle, *p)) return result(error);
  return result(session::executable_changed(exec, handle));
}
cudaError cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return result(session::node_remove(handle));
}

#if MAYA_CUDA_MAJOR >= 12
cudaError cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return instantiate(exec, graph);
}
#endif
cudaError cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                        unsigned long long) {
  return instantiate(exec, graph);
}
cudaError cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                         cudaGraphInstantiateParams* p) {
  cudaError error = instantiate(exec, graph);
  if (p != nullptr)
    p->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess,
    p->errNode_out = nullptr;
  return error;
}
cudaError cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  session::Call call;
  return result(session::graph_launch(exec, stream));
}
cudaError cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (!session::valid_executable(exec) || !session::valid_stream(stream)) return result(1);
  return cudaSuccess;
}
cudaError cudaGraphExecDestroy(cudaGraphExec_t exec) {
  session::Call call;
  return result(session::graph_exec_destroy(exec));
}
cudaError cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                              cudaGraphExecUpdateResultInfo* info) {
  session::Call call;
  int error = session::graph_update(exec, graph);
  if (info != nullptr)
    *info = {error ? cudaGraphExecUpdateErrorTopologyChanged : cudaGraphExecUpdateSuccess, nullptr,
             nullptr};
  return result(error);
}
cudaError cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  if (!session::valid_executable(exec) || flags == nullptr) return result(1);
  *flags = 0;
  return cudaSuccess;
}

cudaError cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                           unsigned, unsigned) {
  return result(session::graph_conditional(graph, handle));
}

cudaError cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return result(session::graph_print(graph, path));
}

cudaError cudaUserObjectCreate(cudaUserObject_t* out, void* object, cudaHostFn_t destroy,
                               unsigned references, unsigned) {
  if (out == nullptr || destroy == nullptr || references == 0) return result(1);
  void* handle = session::make_handle<UserObject>(object, destroy, references);
  if (handle == nullptr) return result(2);
  *out = static_cast<cudaUserObject_t>(handle);
  return cudaSuccess;
}
cudaError cudaUserObjectRetain(cudaUserObject_t handle, unsigned count) {
  auto* object = session::find_handle<UserObject>(handle);
  if (object == nullptr || count == 0) return result(1);
  object->references += count;
  return cudaSuccess;
}
cudaError cudaUserObjectRelease(cudaUserObject_t handle, unsigned count) {
  auto* object = session::find_handle<UserObject>(handle);
  if (object == nullptr || count == 0) return result(1);
  if (object->references <= count) {
    const UserObject last = *object;
    if (session::drop_handle<UserObject>(handle)) last.destroy(last.object);
  } else {
    object->references -= count;
  }
  return cudaSuccess;
}
cudaError cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned,
                                    unsigned) {
  return result(
      !session::valid_graph(graph) || session::find_handle<UserObject>(object) == nullptr ? 1 : 0);
}
cudaError cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned) {
  return result(
      !session::valid_graph(graph) || session::find_handle<UserObject>(object) == nullptr ? 1 : 0);
}

}  // extern "C"
