// Graphs through the driver. XLA builds its command buffers so, node by node, and exchanges the
// nodes' parameters when its buffers move.
#include <cstring>

#include "abi/cuda.h"
#include "abi/cupti_activity.h"
#include "session/graphs.h"
#include "session/host_memory.h"
#include "session/observation.h"
#include "shim/cuda/packed.h"

using namespace maya;
using namespace maya::abi;
using session::NodeType;

namespace {

template <class Parameters>
int keep(void* node, const Parameters& p) {
  return session::node_keep(node, {reinterpret_cast<const char*>(&p), sizeof p});
}

int set(void* node, const CUDA_KERNEL_NODE_PARAMS& p) {
  void* function = p.func != nullptr ? static_cast<void*>(p.func) : static_cast<void*>(p.kern);
  if (!session::valid_function(function)) return session::code::invalid_handle;
  keep(node, p);
  Geometry geometry{{p.gridDimX, p.gridDimY, p.gridDimZ},
                    {p.blockDimX, p.blockDimY, p.blockDimZ},
                    p.sharedMemBytes,
                    0};
  if (p.kernelParams != nullptr || p.extra == nullptr)
    return session::node_kernel(node, function, geometry, p.kernelParams);
  return session::node_kernel(node, function, geometry, shim::cuda::packed_arguments(p.extra));
}

int set(void* node, const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  CUDA_KERNEL_NODE_PARAMS wide{};
  std::memcpy(static_cast<void*>(&wide), &p, sizeof p);  // it begins the same
  return set(node, wide);
}

int set(void* node, const CUDA_MEMCPY3D& p) {
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

int set(void* node, const CUDA_MEMSET_NODE_PARAMS& p) {
  keep(node, p);
  return session::node_fill(node, p.width * p.elementSize * (p.height > 0 ? p.height : 1));
}

int set(void* node, const CUDA_HOST_NODE_PARAMS& p) {
  if (p.fn == nullptr) return 1;
  keep(node, p);
  return session::node_host(node, p.fn, p.userData);
}

int set(void* node, CUgraphNodeParams& p) {
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
      auto** graphs = reinterpret_cast<void**>(p.conditional.phGraph_out);
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
      session::warn("graph nodes of events or semaphores (taken as order only)");
      return 0;
  }
}

// A node that turns out wrong does not stay in the graph.
template <class Parameters>
int add_with(void** out, void* graph, void* const* after, size_t count, NodeType type,
             Parameters* p) {
  session::Call call;
  if (out == nullptr || p == nullptr) return 1;
  if (int error = session::node_add(graph, type, after, count, *out)) return error;
  int error = set(*out, *p);
  if (error != 0) session::node_remove(*out), *out = nullptr;
  return error;
}

bool is(void* node, NodeType type) {
  int found = 0;
  return session::node_type(node, &found) == 0 && found == static_cast<int>(type);
}

template <class Parameters>
int change(void* node, NodeType type, Parameters* p) {
  session::Call call;
  return p == nullptr || !is(node, type) ? 1 : set(node, *p);
}

template <class Parameters>
int change_in(void* executable, void* node, NodeType type, Parameters* p) {
  if (int error = change(node, type, p)) return error;
  return session::executable_changed(executable, node);
}

template <class Parameters>
int parameters_of(void* node, NodeType type, Parameters* p) {
  std::string_view kept;
  if (p == nullptr) return 1;
  if (int error = session::node_kept(node, type, kept)) return error;
  *p = {};
  std::memcpy(static_cast<void*>(p), kept.data(), std::min(sizeof *p, kept.size()));
  return 0;
}

template <class Parameters>
int kernel_parameters_of(void* node, Parameters* p) {
  if (int error = parameters_of(node, NodeType::kernel, p)) return error;
  p->kernelParams = session::node_arguments(node);
  p->extra = nullptr;
  return 0;
}

int instantiate(void** executable, void* graph) {
  session::Call call;
  return executable == nullptr ? 1 : session::graph_instantiate(graph, *executable);
}

void clear_edges(CUgraphEdgeData* edges, const size_t* count) {
  if (edges != nullptr && count != nullptr) std::memset(edges, 0, *count * sizeof *edges);
}

}  // namespace

extern "C" {

int cuGraphCreate(void** graph, unsigned) {
  return graph == nullptr ? 1 : session::graph_create(*graph);
}
int cuGraphDestroy(void* graph) {
  session::Call call;
  return session::graph_destroy(graph);
}
int cuGraphClone(void** out, void* graph) {
  session::Call call;
  return out == nullptr ? 1 : session::graph_clone(graph, *out);
}
int cuGraphNodeFindInClone(void** out, void* original, void* clone) {
  return out == nullptr ? 1 : session::graph_node_in_clone(original, clone, *out);
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
  return out == nullptr ? 1 : session::node_add(graph, NodeType::empty, after, count, *out);
}
int cuGraphAddChildGraphNode(void** out, void* graph, void* const* after, size_t count,
                             void* child) {
  session::Call call;
  if (out == nullptr) return 1;
  if (int error = session::node_add(graph, NodeType::graph, after, count, *out)) return error;
  return session::node_child(*out, child);
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
int cuGraphDestroyNode(void* node) { return session::node_remove(node); }

int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  return session::graph_nodes(graph, false, nodes, count);
}
int cuGraphGetRootNodes(void* graph, void** nodes, size_t* count) {
  return session::graph_nodes(graph, true, nodes, count);
}
int cuGraphGetEdges(void* graph, void** from, void** to, size_t* count) {
  return session::graph_edges(graph, from, to, count);
}
int cuGraphGetEdges_v2(void* graph, void** from, void** to, CUgraphEdgeData* edges, size_t* count) {
  clear_edges(from != nullptr ? edges : nullptr, count);
  return session::graph_edges(graph, from, to, count);
}
int cuGraphNodeGetType(void* node, int* type) { return session::node_type(node, type); }
int cuGraphNodeGetDependencies(void* node, void** nodes, size_t* count) {
  return session::node_dependencies(node, nodes, count);
}
int cuGraphNodeGetDependencies_v2(void* handle, void** nodes, CUgraphEdgeData* edges,
                                  size_t* count) {
  clear_edges(nodes != nullptr ? edges : nullptr, count);
  return cuGraphNodeGetDependencies(handle, nodes, count);
}
int cuGraphNodeGetDependentNodes(void* node, void** nodes, size_t* count) {
  return session::node_dependents(node, nodes, count);
}
int cuGraphNodeGetDependentNodes_v2(void* handle, void** nodes, CUgraphEdgeData* edges,
                                    size_t* count) {
  clear_edges(nodes != nullptr ? edges : nullptr, count);
  return cuGraphNodeGetDependentNodes(handle, nodes, count);
}
int cuGraphChildGraphNodeGetGraph(void* node, void** graph) {
  return session::node_child_graph(node, graph);
}

int cuGraphKernelNodeGetParams_v2(void* node, CUDA_KERNEL_NODE_PARAMS* p) {
  return kernel_parameters_of(node, p);
}
int cuGraphKernelNodeGetParams(void* node, CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return kernel_parameters_of(node, p);
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
int cuGraphExecChildGraphNodeSetParams(void* executable, void* node, void* child) {
  session::Call call;
  if (!is(node, NodeType::graph)) return 1;
  if (int error = session::node_child(node, child)) return error;
  return session::executable_changed(executable, node);
}

// Launch attributes (priority, cluster, cooperative) do not change what a kernel costs here.
int cuGraphKernelNodeSetAttribute(void* node, int, const void* value) {
  return session::valid_node(node) && value != nullptr ? 0 : 1;
}
int cuGraphKernelNodeGetAttribute(void* node, int, void* value) {
  constexpr size_t value_bytes = 64;
  if (!session::valid_node(node) || value == nullptr) return 1;
  std::memset(value, 0, value_bytes);
  return 0;
}
int cuGraphKernelNodeCopyAttributes(void* to, void* from) {
  return session::valid_node(to) && session::valid_node(from) ? 0 : 1;
}

int cuGraphConditionalHandleCreate(unsigned long long* handle, void* graph, void*, unsigned,
                                   unsigned) {
  return session::graph_conditional(graph, handle);
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
  const session::CalledAs as(session::CalledAs::Api::driver, cbid_cuGraphLaunch);
  return session::graph_launch(executable, stream);
}
int cuGraphExecDestroy(void* executable) {
  session::Call call;
  return session::graph_exec_destroy(executable);
}
int cuGraphUpload(void* executable, void*) { return session::valid_executable(executable) ? 0 : 1; }
int cuGraphExecUpdate_v2(void* executable, void* graph, CUgraphExecUpdateResultInfo* info) {
  session::Call call;
  int error = session::graph_update(executable, graph);
  if (info != nullptr) *info = {error ? 2 : 0, nullptr, nullptr};
  return error;
}
int cuGraphExecGetFlags(void* executable, unsigned long long* flags) {
  if (!session::valid_executable(executable) || flags == nullptr) return 1;
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
