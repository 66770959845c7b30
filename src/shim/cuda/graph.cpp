// Graphs through the driver. XLA builds its command buffers so, node by node, and exchanges the
// nodes' parameters when its buffers move.
#include <algorithm>
#include <cstring>

#include "abi/cuda.h"
#include "session/calls.h"
#include "session/host_memory.h"
#include "shim/cuda/packed.h"

using namespace maya;
using namespace maya::abi;
using session::Graph;
using session::graph_of;
using session::GraphExec;
using session::keep;
using session::Node;
using session::node_of;
using session::NodeType;

namespace {

int set(Node& node, const CUDA_KERNEL_NODE_PARAMS& p) {
  session::Function* function = session::state().functions.find(
      p.func != nullptr ? static_cast<void*>(p.func) : static_cast<void*>(p.kern));
  if (function == nullptr) return session::code::invalid_handle;
  keep(node, p);
  node.record = {};
  Geometry geometry{{p.gridDimX, p.gridDimY, p.gridDimZ},
                    {p.blockDimX, p.blockDimY, p.blockDimZ},
                    p.sharedMemBytes,
                    0};
  if (p.kernelParams != nullptr || p.extra == nullptr)
    return session::node_kernel(node, *function, geometry, p.kernelParams);
  auto packed = shim::cuda::packed_arguments(p.extra);
  return session::node_kernel_packed(node, *function, geometry, packed.buffer, packed.bytes);
}

int set(Node& node, const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  CUDA_KERNEL_NODE_PARAMS wide{};
  std::memcpy(static_cast<void*>(&wide), &p, sizeof p);  // it begins the same
  return set(node, wide);
}

int set(Node& node, const CUDA_MEMCPY3D& p) {
  keep(node, p);
  auto place = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : reinterpret_cast<void*>(device);
  };
  session::Area area{.to = place(p.dstMemoryType, p.dstHost, p.dstDevice),
                     .from = place(p.srcMemoryType, p.srcHost, p.srcDevice),
                     .width = p.WidthInBytes,
                     .height = p.Height,
                     .depth = p.Depth};
  return session::node_copy(node, area);
}

int set(Node& node, const CUDA_MEMSET_NODE_PARAMS& p) {
  keep(node, p);
  return session::node_fill(node, p.width * p.elementSize * (p.height > 0 ? p.height : 1));
}

int set(Node& node, const CUDA_HOST_NODE_PARAMS& p) {
  if (p.fn == nullptr) return 1;
  keep(node, p);
  node.host = p.fn, node.host_data = p.userData;
  node.record.kind = trace::Kind::host_function;
  return 0;
}

int set(Node& node, CUgraphNodeParams& p) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return set(node, p.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return set(node, p.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return set(node, p.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      return set(node, p.host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return session::node_child(node, p.graph.graph,
                                 p.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      if (node.child != nullptr) return 0;
      void** graphs = nullptr;
      int error = session::node_bodies(node, p.conditional.size, graphs);
      p.conditional.phGraph_out = reinterpret_cast<CUgraph*>(graphs);
      return error;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      std::uint64_t address = 0;
      int error = session::node_allocation(node, p.alloc.bytesize, address);
      p.alloc.dptr = address;
      return error;
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return 0;
    default:
      session::state().recorder.warning(
          "graph nodes of events or semaphores (taken as order only)");
      return 0;
  }
}

int add(void** out, void* graph, void* const* after, size_t count, NodeType type, Node*& node) {
  if (out == nullptr || (after == nullptr && count > 0)) return 1;
  if (int error = session::touch()) return error;
  int error = session::graph_add(graph, type, {after, count}, node);
  if (error == 0) *out = node;
  return error;
}

// A node that turns out wrong does not stay in the graph.
template <class Parameters>
int add_with(void** out, void* graph, void* const* after, size_t count, NodeType type,
             Parameters* p) {
  session::Call call;
  Node* node = nullptr;
  if (p == nullptr) return 1;
  if (int error = add(out, graph, after, count, type, node)) return error;
  int error = set(*node, *p);
  if (error != 0) node->removed = true, *out = nullptr;
  return error;
}

template <class Parameters>
int change(void* handle, NodeType type, Parameters* p) {
  session::Call call;
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr || node->type != type) return 1;
  return set(*node, *p);
}

template <class Parameters>
int change_in(void* executable, void* handle, NodeType type, Parameters* p) {
  if (int error = change(handle, type, p)) return error;
  return session::executable_changed(executable, *node_of(handle));
}

template <class Parameters>
int parameters_of(void* handle, NodeType type, Parameters* p) {
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr || node->type != type) return 1;
  *p = {};
  std::memcpy(static_cast<void*>(p), node->parameters.data(),
              std::min(sizeof *p, node->parameters.size()));
  return 0;
}

int instantiate(void** executable, void* graph) {
  session::Call call;
  if (executable == nullptr) return 1;
  GraphExec* made = nullptr;
  int error = session::graph_instantiate(graph, made);
  if (error == 0) *executable = made;
  return error;
}

void clear_edges(CUgraphEdgeData* edges, const size_t* count) {
  if (edges != nullptr && count != nullptr) std::memset(edges, 0, *count * sizeof *edges);
}

int edges_of(void* handle, void** from, void** to, size_t* count) {
  Graph* graph = graph_of(handle);
  if (graph == nullptr || count == nullptr) return 1;
  size_t found = 0;
  for (Node* node : session::nodes_of(*graph, false))
    for (Node* before : session::nodes_before(*node)) {
      if (from != nullptr && to != nullptr && found < *count)
        from[found] = before, to[found] = node;
      ++found;
    }
  *count = from != nullptr && to != nullptr ? std::min(*count, found) : found;
  return 0;
}

}  // namespace

extern "C" {

int cuGraphCreate(void** graph, unsigned) {
  if (graph == nullptr) return 1;
  *graph = session::graph_create();
  return *graph != nullptr ? 0 : session::code::out_of_memory;
}
int cuGraphDestroy(void* graph) {
  session::Call call;
  return session::graph_destroy(graph);
}
int cuGraphClone(void** out, void* handle) {
  session::Call call;
  Graph* graph = graph_of(handle);
  if (out == nullptr || graph == nullptr) return 1;
  *out = session::graph_clone(*graph);
  return *out != nullptr ? 0 : session::code::out_of_memory;
}
int cuGraphNodeFindInClone(void** out, void* original, void* clone) {
  Node* node = node_of(original);
  Graph* graph = graph_of(clone);
  if (out == nullptr || node == nullptr || graph == nullptr || node->index >= graph->nodes.size())
    return 1;
  *out = graph->nodes[node->index];
  return 0;
}

int cuGraphAddNode(void** node, void* graph, void* const* after, size_t count,
                   CUgraphNodeParams* p) {
  if (p == nullptr) return 1;
  return add_with(node, graph, after, count, static_cast<NodeType>(p->type), p);
}
int cuGraphAddNode_v2(void** node, void* graph, void* const* after, const void*, size_t count,
                      CUgraphNodeParams* p) {
  return cuGraphAddNode(node, graph, after, count, p);
}
int cuGraphAddNode_v3(void** node, void* graph, void* const* after, const void*, size_t count,
                      CUgraphNodeParams* p) {
  return cuGraphAddNode(node, graph, after, count, p);
}
int cuGraphAddKernelNode(void** node, void* graph, void* const* after, size_t count,
                         const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return add_with(node, graph, after, count, NodeType::kernel, p);
}
int cuGraphAddKernelNode_v2(void** node, void* graph, void* const* after, size_t count,
                            const CUDA_KERNEL_NODE_PARAMS* p) {
  return add_with(node, graph, after, count, NodeType::kernel, p);
}
int cuGraphAddMemcpyNode(void** node, void* graph, void* const* after, size_t count,
                         const CUDA_MEMCPY3D* p, void*) {
  return add_with(node, graph, after, count, NodeType::memcpy, p);
}
int cuGraphAddMemsetNode(void** node, void* graph, void* const* after, size_t count,
                         const CUDA_MEMSET_NODE_PARAMS* p, void*) {
  return add_with(node, graph, after, count, NodeType::memset, p);
}
int cuGraphAddHostNode(void** node, void* graph, void* const* after, size_t count,
                       const CUDA_HOST_NODE_PARAMS* p) {
  return add_with(node, graph, after, count, NodeType::host, p);
}
int cuGraphAddEmptyNode(void** out, void* graph, void* const* after, size_t count) {
  Node* node = nullptr;
  return add(out, graph, after, count, NodeType::empty, node);
}
int cuGraphAddChildGraphNode(void** out, void* graph, void* const* after, size_t count,
                             void* child) {
  session::Call call;
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::graph, node)) return error;
  return session::node_child(*node, child);
}

int cuGraphAddDependencies(void* graph, void* const* from, void* const* to, size_t count) {
  return session::graph_connect(graph, from, to, count, true);
}
int cuGraphAddDependencies_v2(void* graph, void* const* from, void* const* to, const void*,
                              size_t count) {
  return session::graph_connect(graph, from, to, count, true);
}
int cuGraphRemoveDependencies(void* graph, void* const* from, void* const* to, size_t count) {
  return session::graph_connect(graph, from, to, count, false);
}
int cuGraphRemoveDependencies_v2(void* graph, void* const* from, void* const* to, const void*,
                                 size_t count) {
  return session::graph_connect(graph, from, to, count, false);
}
int cuGraphDestroyNode(void* handle) {
  Node* node = node_of(handle);
  if (node == nullptr) return 1;
  node->removed = true;
  return 0;
}

int cuGraphGetNodes(void* handle, void** nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  return graph == nullptr ? 1 : session::list_nodes(session::nodes_of(*graph, false), nodes, count);
}
int cuGraphGetRootNodes(void* handle, void** nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  return graph == nullptr ? 1 : session::list_nodes(session::nodes_of(*graph, true), nodes, count);
}
int cuGraphGetEdges(void* graph, void** from, void** to, size_t* count) {
  return edges_of(graph, from, to, count);
}
int cuGraphGetEdges_v2(void* graph, void** from, void** to, CUgraphEdgeData* edges, size_t* count) {
  clear_edges(from != nullptr ? edges : nullptr, count);
  return edges_of(graph, from, to, count);
}
int cuGraphNodeGetType(void* handle, int* type) {
  Node* node = node_of(handle);
  if (node == nullptr || type == nullptr) return 1;
  *type = static_cast<int>(node->type);
  return 0;
}
int cuGraphNodeGetDependencies(void* handle, void** nodes, size_t* count) {
  Node* node = node_of(handle);
  return node == nullptr ? 1 : session::list_nodes(session::nodes_before(*node), nodes, count);
}
int cuGraphNodeGetDependencies_v2(void* handle, void** nodes, CUgraphEdgeData* edges,
                                  size_t* count) {
  clear_edges(nodes != nullptr ? edges : nullptr, count);
  return cuGraphNodeGetDependencies(handle, nodes, count);
}
int cuGraphNodeGetDependentNodes(void* handle, void** nodes, size_t* count) {
  Node* node = node_of(handle);
  return node == nullptr ? 1 : session::list_nodes(session::nodes_after(*node), nodes, count);
}
int cuGraphNodeGetDependentNodes_v2(void* handle, void** nodes, CUgraphEdgeData* edges,
                                    size_t* count) {
  clear_edges(nodes != nullptr ? edges : nullptr, count);
  return cuGraphNodeGetDependentNodes(handle, nodes, count);
}
int cuGraphChildGraphNodeGetGraph(void* handle, void** graph) {
  Node* node = node_of(handle);
  if (node == nullptr || graph == nullptr || node->type != NodeType::graph) return 1;
  *graph = node->child;
  return 0;
}

int cuGraphKernelNodeGetParams_v2(void* handle, CUDA_KERNEL_NODE_PARAMS* p) {
  if (int error = parameters_of(handle, NodeType::kernel, p)) return error;
  p->kernelParams = node_of(handle)->argument_pointers.data();
  p->extra = nullptr;
  return 0;
}
int cuGraphKernelNodeGetParams(void* handle, CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (int error = parameters_of(handle, NodeType::kernel, p)) return error;
  p->kernelParams = node_of(handle)->argument_pointers.data();
  p->extra = nullptr;
  return 0;
}
int cuGraphMemcpyNodeGetParams(void* node, CUDA_MEMCPY3D* p) {
  return parameters_of(node, NodeType::memcpy, p);
}
int cuGraphMemsetNodeGetParams(void* node, CUDA_MEMSET_NODE_PARAMS* p) {
  return parameters_of(node, NodeType::memset, p);
}
int cuGraphHostNodeGetParams(void* node, CUDA_HOST_NODE_PARAMS* p) {
  return parameters_of(node, NodeType::host, p);
}

int cuGraphKernelNodeSetParams(void* node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return change(node, NodeType::kernel, p);
}
int cuGraphKernelNodeSetParams_v2(void* node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return change(node, NodeType::kernel, p);
}
int cuGraphMemcpyNodeSetParams(void* node, const CUDA_MEMCPY3D* p) {
  return change(node, NodeType::memcpy, p);
}
int cuGraphMemsetNodeSetParams(void* node, const CUDA_MEMSET_NODE_PARAMS* p) {
  return change(node, NodeType::memset, p);
}
int cuGraphHostNodeSetParams(void* node, const CUDA_HOST_NODE_PARAMS* p) {
  return change(node, NodeType::host, p);
}
int cuGraphNodeSetParams(void* node, CUgraphNodeParams* p) {
  return p == nullptr ? 1 : change(node, static_cast<NodeType>(p->type), p);
}

int cuGraphExecKernelNodeSetParams(void* executable, void* node,
                                   const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return change_in(executable, node, NodeType::kernel, p);
}
int cuGraphExecKernelNodeSetParams_v2(void* executable, void* node,
                                      const CUDA_KERNEL_NODE_PARAMS* p) {
  return change_in(executable, node, NodeType::kernel, p);
}
int cuGraphExecMemcpyNodeSetParams(void* executable, void* node, const CUDA_MEMCPY3D* p, void*) {
  return change_in(executable, node, NodeType::memcpy, p);
}
int cuGraphExecMemsetNodeSetParams(void* executable, void* node, const CUDA_MEMSET_NODE_PARAMS* p,
                                   void*) {
  return change_in(executable, node, NodeType::memset, p);
}
int cuGraphExecHostNodeSetParams(void* executable, void* node, const CUDA_HOST_NODE_PARAMS* p) {
  return change_in(executable, node, NodeType::host, p);
}
int cuGraphExecNodeSetParams(void* executable, void* node, CUgraphNodeParams* p) {
  return p == nullptr ? 1 : change_in(executable, node, static_cast<NodeType>(p->type), p);
}
int cuGraphExecChildGraphNodeSetParams(void* executable, void* handle, void* child) {
  session::Call call;
  Node* node = node_of(handle);
  if (node == nullptr || node->type != NodeType::graph) return 1;
  if (int error = session::node_child(*node, child)) return error;
  return session::executable_changed(executable, *node);
}

// Launch attributes (priority, cluster, cooperative) do not change what a kernel costs here.
int cuGraphKernelNodeSetAttribute(void* node, int, const void* value) {
  return node_of(node) != nullptr && value != nullptr ? 0 : 1;
}
int cuGraphKernelNodeGetAttribute(void* node, int, void* value) {
  constexpr size_t value_bytes = 64;
  if (node_of(node) == nullptr || value == nullptr) return 1;
  std::memset(value, 0, value_bytes);
  return 0;
}
int cuGraphKernelNodeCopyAttributes(void* to, void* from) {
  return node_of(to) != nullptr && node_of(from) != nullptr ? 0 : 1;
}

int cuGraphConditionalHandleCreate(unsigned long long* handle, void* graph, void*, unsigned,
                                   unsigned) {
  if (handle == nullptr) return 1;
  *handle = session::new_conditional(graph);
  return *handle != 0 ? 0 : 1;
}

int cuGraphInstantiate_v2(void** executable, void* graph, void** error_node, char* log,
                          size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) *log = 0;
  return instantiate(executable, graph);
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return instantiate(executable, graph);
}
int cuGraphInstantiateWithParams(void** executable, void* graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  int error = instantiate(executable, graph);
  if (p != nullptr) p->result_out = error != 0, p->hErrNode_out = nullptr;
  return error;
}
int cuGraphLaunch(void* executable, void* stream) {
  session::Call call;
  return session::graph_launch(executable, stream);
}
int cuGraphExecDestroy(void* executable) {
  session::Call call;
  return session::graph_exec_destroy(executable);
}
int cuGraphUpload(void* executable, void*) {
  return session::state().executables.find(executable) ? 0 : 1;
}
int cuGraphExecUpdate_v2(void* executable, void* graph, CUgraphExecUpdateResultInfo* info) {
  session::Call call;
  int error = session::graph_update(executable, graph);
  if (info != nullptr) *info = {error ? 2 : 0, nullptr, nullptr};
  return error;
}
int cuGraphExecGetFlags(void* executable, unsigned long long* flags) {
  if (session::state().executables.find(executable) == nullptr || flags == nullptr) return 1;
  *flags = 0;
  return 0;
}

int cuGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return session::graph_print(graph, path);
}

int cuDeviceGetGraphMemAttribute(int, int, void* value) {
  if (!session::mapped(value, 8)) return 1;
  *static_cast<std::uint64_t*>(value) = 0;
  return session::ready();
}
int cuDeviceSetGraphMemAttribute(int, int, void*) { return session::ready(); }
int cuDeviceGraphMemTrim(int) { return session::ready(); }

}  // extern "C"
