#include <cstring>
#include <memory>

#include "session/handles.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::Graph;
using session::graph_of;
using session::GraphExec;
using session::keep;
using session::Node;
using session::node_of;
using session::NodeType;

namespace {

int add(cudaGraphNode_t* out, void* graph, void* const* after, size_t count, NodeType type,
        Node*& node) {
  if (out == nullptr || (after == nullptr && count > 0)) return 1;
  if (int error = session::touch()) return error;
  int error = session::graph_add(graph, type, {after, count}, node);
  if (error == 0) cudart::hand_out(out, node);
  return error;
}

int set_kernel(Node& node, const cudaKernelNodeParams& p) {
  session::Function* function = session::registered_function(p.func);
  if (function == nullptr) return 98;
  keep(node, p);
  node.record = {};
  Geometry g{{p.gridDim.x, p.gridDim.y, p.gridDim.z},
             {p.blockDim.x, p.blockDim.y, p.blockDim.z},
             p.sharedMemBytes,
             0};
  return session::node_kernel(node, *function, g, p.kernelParams);
}

int set_copy(Node& node, const cudaMemcpy3DParms& p) {
  keep(node, p);
  session::Area area{.to = p.dstPtr.ptr,
                     .from = p.srcPtr.ptr,
                     .width = p.extent.width,
                     .height = p.extent.height,
                     .depth = p.extent.depth};
  return session::node_copy(node, area);
}

int set_fill(Node& node, const cudaMemsetParams& p) {
  keep(node, p);
  return session::node_fill(node, p.width * p.elementSize * std::max<size_t>(p.height, 1));
}

int set_host(Node& node, const cudaHostNodeParams& p) {
  keep(node, p);
  node.host = p.fn, node.host_data = p.userData;
  node.record.kind = trace::Kind::host_function;
  return 0;
}

constexpr int give_away = 1;  // cudaGraphChildGraphOwnershipMove

int add_tagged(cudaGraphNode_t* out, void* graph, void* const* after, size_t count,
               cudaGraphNodeParams* p) {
  if (p == nullptr) return 1;
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, static_cast<NodeType>(p->type), node)) return error;
  switch (p->type) {
    case cudaGraphNodeTypeKernel:
      return set_kernel(*node, p->kernel);
    case cudaGraphNodeTypeMemcpy:
      return set_copy(*node, p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return set_fill(*node, p->memset);
    case cudaGraphNodeTypeHost:
      return set_host(*node, p->host);
    case cudaGraphNodeTypeGraph:
      return session::node_child(*node, p->graph.graph, p->graph.ownership == give_away);
    case cudaGraphNodeTypeConditional: {
      void** graphs = nullptr;
      int error = session::node_bodies(*node, p->conditional.size, graphs);
      p->conditional.phGraph_out = reinterpret_cast<cudaGraph_t*>(graphs);
      return error;
    }
    case cudaGraphNodeTypeMemAlloc: {
      std::uint64_t address = 0;
      int error = session::node_allocation(*node, p->alloc.bytesize, address);
      p->alloc.dptr = reinterpret_cast<void*>(address);
      return error;
    }
    default:
      return 0;
  }
}

cudaError instantiate(cudaGraphExec_t* out, cudaGraph_t graph) {
  session::Call call;
  if (out == nullptr) return result(1);
  GraphExec* made = nullptr;
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
  cudart::hand_out(graph, session::graph_create());
  return cudaSuccess;
}
cudaError cudaGraphDestroy(cudaGraph_t graph) {
  session::Call call;
  return result(session::graph_destroy(graph));
}
#if MAYA_CUDA_MAJOR >= 13
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                           const void*, size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
#else
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                           size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
cudaError cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after,
                              const void*, size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
#endif
cudaError cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaKernelNodeParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::kernel, node)) return result(error);
  return result(set_kernel(*node, *p));
}
cudaError cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaMemcpy3DParms* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::memcpy, node)) return result(error);
  return result(set_copy(*node, *p));
}
cudaError cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                   size_t count, void* to, const void* from, size_t bytes, int) {
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::memcpy, node)) return result(error);
  return result(session::node_copy(*node, session::Area{.to = to, .from = from, .width = bytes}));
}
cudaError cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                 size_t count, const cudaMemsetParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::memset, node)) return result(error);
  return result(set_fill(*node, *p));
}
cudaError cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                               size_t count, const cudaHostNodeParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::host, node)) return result(error);
  return result(set_host(*node, *p));
}
cudaError cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                size_t count) {
  Node* node = nullptr;
  return result(add(out, graph, after, count, NodeType::empty, node));
}
cudaError cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after,
                                     size_t count, cudaGraph_t child) {
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::graph, node)) return result(error);
  return result(session::node_child(*node, child));
}

cudaError cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  if (graph == nullptr) return result(1);
  return result(session::list_nodes(session::nodes_of(*graph, false),
                                    reinterpret_cast<void**>(nodes), count));
}
cudaError cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  if (graph == nullptr) return result(1);
  return result(
      session::list_nodes(session::nodes_of(*graph, true), reinterpret_cast<void**>(nodes), count));
}
cudaError cudaGraphNodeGetType(cudaGraphNode_t handle, int* type) {
  Node* node = node_of(handle);
  if (node == nullptr || type == nullptr) return result(1);
  *type = static_cast<int>(node->type);
  return cudaSuccess;
}

}  // extern "C"

namespace {
int dependencies(void* handle, cudaGraphNode_t* list, size_t* count) {
  Node* node = node_of(handle);
  return node == nullptr ? 1
                         : session::list_nodes(session::nodes_before(*node),
                                               reinterpret_cast<void**>(list), count);
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
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr || node->type != NodeType::kernel) return result(1);
  *p = {};
  if (node->parameters.size() == sizeof *p)
    std::memcpy(static_cast<void*>(p), node->parameters.data(), sizeof *p);
  p->kernelParams = node->argument_pointers.data();
  return cudaSuccess;
}
cudaError cudaGraphKernelNodeSetParams(cudaGraphNode_t handle, const cudaKernelNodeParams* p) {
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr) return result(1);
  return result(set_kernel(*node, *p));
}
cudaError cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t handle,
                                           const cudaKernelNodeParams* p) {
  session::Call call;
  Node* node = node_of(handle);
  if (session::state().executables.find(exec) == nullptr || node == nullptr || p == nullptr)
    return result(1);
  if (int error = set_kernel(*node, *p)) return result(error);
  return result(session::executable_changed(exec, *node));
}
cudaError cudaGraphDestroyNode(cudaGraphNode_t handle) {
  Node* node = node_of(handle);
  if (node == nullptr) return result(1);
  node->removed = true;
  return cudaSuccess;
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
  if (session::state().executables.find(exec) == nullptr || !session::valid_stream(stream))
    return result(1);
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
  if (session::state().executables.find(exec) == nullptr || flags == nullptr) return result(1);
  *flags = 0;
  return cudaSuccess;
}

cudaError cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                           unsigned, unsigned) {
  if (handle == nullptr) return result(1);
  *handle = session::new_conditional(graph);
  return result(*handle != 0 ? 0 : 1);
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
      graph_of(graph) == nullptr || session::find_handle<UserObject>(object) == nullptr ? 1 : 0);
}
cudaError cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned) {
  return result(
      graph_of(graph) == nullptr || session::find_handle<UserObject>(object) == nullptr ? 1 : 0);
}

}  // extern "C"
