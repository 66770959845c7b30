#include <cstdio>
#include <cstring>
#include <memory>

#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::Graph;
using session::GraphExec;
using session::Node;
using session::NodeType;

namespace {

Node* node_of(void* handle) { return session::state().nodes.find(handle); }
Graph* graph_of(void* handle) { return session::state().graphs.find(handle); }

int add(cudaGraphNode_t* out, void* graph, void* const* after, size_t count, NodeType type, Node*& node) {
  if (out == nullptr || (after == nullptr && count > 0)) return 1;
  if (int error = session::touch()) return error;
  int error = session::graph_add(graph, type, {after, count}, node);
  if (error == 0) cudart::hand_out(out, node);
  return error;
}

template <class Parameters>
void keep(Node& node, const Parameters& p) {
  const char* bytes = reinterpret_cast<const char*>(&p);
  node.parameters.assign(bytes, bytes + sizeof p);
}

int set_kernel(Node& node, const cudaKernelNodeParams& p) {
  session::Function* function = session::registered_function(p.func);
  if (function == nullptr) return 98;
  keep(node, p);
  node.record = {};
  Geometry g{{p.gridDim.x, p.gridDim.y, p.gridDim.z}, {p.blockDim.x, p.blockDim.y, p.blockDim.z}, p.sharedMemBytes, 0};
  return session::node_kernel(node, *function, g, p.kernelParams);
}

int set_copy(Node& node, const cudaMemcpy3DParms& p) {
  keep(node, p);
  session::Area area{.to = p.dstPtr.ptr, .from = p.srcPtr.ptr, .width = p.extent.width, .height = p.extent.height, .depth = p.extent.depth};
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

// The handle's value is free for us to choose; a conditional body is recorded as running once.
std::atomic<unsigned long long> next_conditional{1};

int add_tagged(cudaGraphNode_t* out, void* graph, void* const* after, size_t count, cudaGraphNodeParams* p) {
  if (p == nullptr) return 1;
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, static_cast<NodeType>(p->type), node)) return error;
  switch (p->type) {
    case cudaGraphNodeTypeKernel: return set_kernel(*node, p->kernel);
    case cudaGraphNodeTypeMemcpy: return set_copy(*node, p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: return set_fill(*node, p->memset);
    case cudaGraphNodeTypeHost: return set_host(*node, p->host);
    case cudaGraphNodeTypeGraph: node->child = graph_of(p->graph.graph); return node->child ? 0 : 1;
    case cudaGraphNodeTypeConditional: {
      unsigned bodies = std::max(1u, p->conditional.size);
      auto** graphs = new cudaGraph_t[bodies];  // belongs to the node for the life of the graph
      for (unsigned i = 0; i < bodies; ++i) {
        Graph* body = session::graph_create();
        if (body == nullptr) return 2;
        body->owned_by_node = true;
        graphs[i] = reinterpret_cast<cudaGraph_t>(body);
        if (i == 0) node->child = body;
      }
      p->conditional.phGraph_out = graphs;
      return 0;
    }
    case cudaGraphNodeTypeMemAlloc: {
      auto allocation = session::state().memory.allocate(session::thread().device, p->alloc.bytesize, device::MemoryKind::pool);
      if (!allocation) return 2;
      p->alloc.dptr = reinterpret_cast<void*>(allocation->address);
      return 0;
    }
    default: return 0;
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
  void* object;
  cudaHostFn_t destroy;
  unsigned references;
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
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after, const void*, size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
#else
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after, size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
cudaError cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, void* const* after, const void*, size_t count, cudaGraphNodeParams* p) {
  return result(add_tagged(node, graph, after, count, p));
}
#endif
cudaError cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, const cudaKernelNodeParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::kernel, node)) return result(error);
  return result(set_kernel(*node, *p));
}
cudaError cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, const cudaMemcpy3DParms* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::memcpy, node)) return result(error);
  return result(set_copy(*node, *p));
}
cudaError cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, void* to, const void* from,
                                   size_t bytes, int) {
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::memcpy, node)) return result(error);
  return result(session::node_copy(*node, session::Area{.to = to, .from = from, .width = bytes}));
}
cudaError cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, const cudaMemsetParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::memset, node)) return result(error);
  return result(set_fill(*node, *p));
}
cudaError cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, const cudaHostNodeParams* p) {
  Node* node = nullptr;
  if (p == nullptr) return result(1);
  if (int error = add(out, graph, after, count, NodeType::host, node)) return result(error);
  return result(set_host(*node, *p));
}
cudaError cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count) {
  Node* node = nullptr;
  return result(add(out, graph, after, count, NodeType::empty, node));
}
cudaError cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph, void* const* after, size_t count, cudaGraph_t child) {
  Node* node = nullptr;
  if (int error = add(out, graph, after, count, NodeType::graph, node)) return result(error);
  node->child = graph_of(child);
  return result(node->child ? 0 : 1);
}

cudaError cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  if (graph == nullptr || count == nullptr) return result(1);
  size_t found = 0;
  for (Node* node : graph->nodes) {
    if (node->removed) continue;
    if (nodes != nullptr && found < *count) cudart::hand_out(&nodes[found], node);
    ++found;
  }
  if (nodes != nullptr)
    for (size_t i = found; i < *count; ++i) nodes[i] = nullptr;
  *count = found;
  return cudaSuccess;
}
cudaError cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  Graph* graph = graph_of(handle);
  if (graph == nullptr || count == nullptr) return result(1);
  size_t found = 0;
  for (Node* node : graph->nodes) {
    if (node->removed || !node->after.empty()) continue;
    if (nodes != nullptr && found < *count) cudart::hand_out(&nodes[found], node);
    ++found;
  }
  *count = found;
  return cudaSuccess;
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
  if (node == nullptr || count == nullptr) return 1;
  for (size_t i = 0; list != nullptr && i < *count && i < node->after.size(); ++i)
    cudart::hand_out(&list[i], node->graph->nodes[node->after[i]]);
  *count = node->after.size();
  return 0;
}
int connect(void* graph, void* const* from, void* const* to, size_t count) {
  if (graph_of(graph) == nullptr) return 1;
  for (size_t i = 0; i < count; ++i) {
    Node* a = node_of(from[i]);
    Node* b = node_of(to[i]);
    if (a == nullptr || b == nullptr) return 1;
    b->after.push_back(a->index);
  }
  return 0;
}
}  // namespace

extern "C" {

#if MAYA_CUDA_MAJOR >= 13
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* list, void* edges, size_t* count) {
  if (edges != nullptr && count != nullptr && list != nullptr) std::memset(edges, 0, *count * sizeof(cudaGraphEdgeData));
  return result(dependencies(node, list, count));
}
cudaError cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to, const void*, size_t count) {
  return result(connect(graph, from, to, count));
}
#else
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* list, size_t* count) {
  return result(dependencies(node, list, count));
}
cudaError cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* list, void* edges, size_t* count) {
  if (edges != nullptr && count != nullptr && list != nullptr) std::memset(edges, 0, *count * sizeof(cudaGraphEdgeData));
  return result(dependencies(node, list, count));
}
cudaError cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to, size_t count) {
  return result(connect(graph, from, to, count));
}
#endif

cudaError cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* p) {
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr || node->type != NodeType::kernel) return result(1);
  *p = {};
  if (node->parameters.size() == sizeof *p) std::memcpy(static_cast<void*>(p), node->parameters.data(), sizeof *p);
  p->kernelParams = node->argument_pointers.data();
  return cudaSuccess;
}
cudaError cudaGraphKernelNodeSetParams(cudaGraphNode_t handle, const cudaKernelNodeParams* p) {
  Node* node = node_of(handle);
  if (node == nullptr || p == nullptr) return result(1);
  return result(set_kernel(*node, *p));
}
cudaError cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t handle, const cudaKernelNodeParams* p) {
  session::Call call;
  Node* node = node_of(handle);
  if (session::state().executables.find(exec) == nullptr || node == nullptr || p == nullptr) return result(1);
  if (int error = set_kernel(*node, *p)) return result(error);
  return result(session::graph_update(exec, node->graph));
}
cudaError cudaGraphDestroyNode(cudaGraphNode_t handle) {
  Node* node = node_of(handle);
  if (node == nullptr) return result(1);
  node->removed = true;
  return cudaSuccess;
}

#if MAYA_CUDA_MAJOR >= 12
cudaError cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) { return instantiate(exec, graph); }
#endif
cudaError cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) { return instantiate(exec, graph); }
cudaError cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  cudaError error = instantiate(exec, graph);
  if (p != nullptr) p->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess, p->errNode_out = nullptr;
  return error;
}
cudaError cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  session::Call call;
  return result(session::graph_launch(exec, stream));
}
cudaError cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (session::state().executables.find(exec) == nullptr || !session::valid_stream(stream)) return result(1);
  return cudaSuccess;
}
cudaError cudaGraphExecDestroy(cudaGraphExec_t exec) {
  session::Call call;
  return result(session::graph_exec_destroy(exec));
}
cudaError cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  session::Call call;
  int error = session::graph_update(exec, graph);
  if (info != nullptr) *info = {error ? cudaGraphExecUpdateErrorTopologyChanged : cudaGraphExecUpdateSuccess, nullptr, nullptr};
  return result(error);
}
cudaError cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  if (session::state().executables.find(exec) == nullptr || flags == nullptr) return result(1);
  *flags = 0;
  return cudaSuccess;
}

cudaError cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned, unsigned) {
  if (handle == nullptr || graph_of(graph) == nullptr) return result(1);
  *handle = next_conditional.fetch_add(1);
  return cudaSuccess;
}

cudaError cudaGraphDebugDotPrint(cudaGraph_t handle, const char* path, unsigned) {
  Graph* graph = graph_of(handle);
  std::FILE* file = graph != nullptr && path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return result(1);
  std::fprintf(file, "digraph dot {\n");
  for (const Node* node : graph->nodes) {
    std::fprintf(file, "  \"%u\" [label=\"type %d\"];\n", node->index, static_cast<int>(node->type));
    for (auto before : node->after) std::fprintf(file, "  \"%u\" -> \"%u\";\n", before, node->index);
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return cudaSuccess;
}

cudaError cudaUserObjectCreate(cudaUserObject_t* out, void* object, cudaHostFn_t destroy, unsigned references, unsigned) {
  if (out == nullptr || destroy == nullptr || references == 0) return result(1);
  cudart::hand_out(out, new UserObject{object, destroy, references});
  return cudaSuccess;
}
cudaError cudaUserObjectRetain(cudaUserObject_t handle, unsigned count) {
  if (handle == nullptr) return result(1);
  reinterpret_cast<UserObject*>(handle)->references += count;
  return cudaSuccess;
}
cudaError cudaUserObjectRelease(cudaUserObject_t handle, unsigned count) {
  if (handle == nullptr) return result(1);
  auto* object = reinterpret_cast<UserObject*>(handle);
  if (object->references <= count) {
    object->destroy(object->object);
    delete object;
  } else {
    object->references -= count;
  }
  return cudaSuccess;
}
cudaError cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned, unsigned) {
  return result(graph_of(graph) == nullptr || object == nullptr ? 1 : 0);
}
cudaError cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned) {
  return result(graph_of(graph) == nullptr || object == nullptr ? 1 : 0);
}

}  // extern "C"
