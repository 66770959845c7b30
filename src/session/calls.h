// What runtime and driver entry points ask for, in one vocabulary. All return CUDA error numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "session/state.h"

namespace maya::session {

// Streams
// ------------------------------------------------------------------------------------------
MAYA_EXPORT int find_stream(void* handle, Stream*& stream);  // resolves 0, 1 and 2
MAYA_EXPORT int stream_create(Stream*& stream, unsigned flags, int priority);
MAYA_EXPORT int stream_destroy(void* handle);
MAYA_EXPORT int stream_synchronize(void* handle);
MAYA_EXPORT int stream_query(void* handle);
void stream_reached(Stream& stream);  // the host waited for all of it
MAYA_EXPORT int device_synchronize();
MAYA_EXPORT int stream_wait_event(void* stream, void* event, unsigned flags);
MAYA_EXPORT int stream_host_function(void* stream, void (*function)(void*), void* data);

// Events
// -------------------------------------------------------------------------------------------
MAYA_EXPORT int event_create(Event*& event, unsigned flags);
MAYA_EXPORT int event_destroy(void* handle);
MAYA_EXPORT int event_record(void* event, void* stream, unsigned flags = 0);
MAYA_EXPORT int event_synchronize(void* event);
MAYA_EXPORT int event_query(void* event);
MAYA_EXPORT int event_elapsed(float* milliseconds, void* start, void* end);

// Memory
// -------------------------------------------------------------------------------------------
MAYA_EXPORT int allocate(void** address, std::uint64_t bytes, device::MemoryKind kind);
// For a library's own use: also while a graph is captured.
MAYA_EXPORT int take(void** address, std::uint64_t bytes, device::MemoryKind kind);
MAYA_EXPORT int release(void* address);
MAYA_EXPORT int allocate_async(void** address, std::uint64_t bytes, Pool* pool, void* stream);
MAYA_EXPORT int release_async(void* address, void* stream);
MAYA_EXPORT int allocate_host(void** address, std::uint64_t bytes);
MAYA_EXPORT int release_host(void* address);
MAYA_EXPORT int register_host(void* address, std::uint64_t bytes);
MAYA_EXPORT int unregister_host(void* address);
MAYA_EXPORT bool is_pinned(const void* address, std::uint64_t* base = nullptr,
                           std::uint64_t* bytes = nullptr);

enum class Where : std::uint8_t { device, managed, pinned, pageable };
MAYA_EXPORT Where where(const void* address);

// Copies and fills; rows > 1: pitched. Addresses decide the direction.
struct Area {
  void* to{};
  const void* from{};
  std::uint64_t width{}, height{1}, depth{1};
  std::uint64_t to_pitch{}, from_pitch{}, to_slice{}, from_slice{};
};
MAYA_EXPORT int copy(const Area& area, void* stream, bool async);
MAYA_EXPORT int fill(void* to, std::uint64_t pitch, unsigned value, std::uint32_t element,
                     std::uint64_t width, std::uint64_t height, void* stream, bool async);

// Kernels
// ------------------------------------------------------------------------------------------
MAYA_EXPORT int resolve(Function& function);
MAYA_EXPORT int launch(Function& function, const Geometry& geometry, void* const* arguments,
                       void* stream);
// Arguments in one buffer (cuLaunchKernel's `extra`).
MAYA_EXPORT int launch_packed(Function& function, const Geometry& geometry, const void* buffer,
                              std::size_t bytes, void* stream);
MAYA_EXPORT int module_load(Module*& module, const void* data);
MAYA_EXPORT int module_unload(Module* module);
MAYA_EXPORT int module_function(Module& module, const char* name, Function*& function);
MAYA_EXPORT int module_variable(Module& module, const char* name, std::uint64_t hint,
                                std::uint64_t& address, std::uint64_t& bytes);
// Of a resolved function.
struct KernelAttributes {
  int static_shared{}, local_bytes{}, registers{}, max_threads{}, max_dynamic_shared{}, carveout{};
  int ptx_version{}, binary_version{};
};
MAYA_EXPORT KernelAttributes kernel_attributes(const Function& function);
MAYA_EXPORT int set_kernel_attribute(Function& function, int attribute, int value);
MAYA_EXPORT int occupancy(Function& function, int block_threads, std::uint64_t dynamic_shared,
                          int& blocks);
MAYA_EXPORT int active_clusters(Function& function, int block_threads, std::uint64_t dynamic_shared,
                                unsigned blocks_per_cluster, int& clusters);
MAYA_EXPORT int largest_cluster();  // in blocks, without asking for a non-portable size

// Functions registered by the program's start-up code, found by the host stub's address.
MAYA_EXPORT Module* register_binary(const void* wrapper);
MAYA_EXPORT void register_function(Module* module, const void* host, const char* name);
MAYA_EXPORT void register_variable(Module* module, const void* host, const char* name,
                                   std::uint64_t bytes);
MAYA_EXPORT void unregister_binary(Module* module);
MAYA_EXPORT Function* registered_function(const void* host);
MAYA_EXPORT int registered_variable(const void* host, std::uint64_t& address, std::uint64_t& bytes);

// Graphs
// -------------------------------------------------------------------------------------------
MAYA_EXPORT int capture_begin(void* stream, int mode, Graph* into = nullptr,
                              std::span<Node* const> after = {});
MAYA_EXPORT int capture_end(void* stream, Graph*& graph);
MAYA_EXPORT int capture_status(void* stream, int& status, std::uint64_t& id, Graph*& graph);
// Whether a call that captures forbid may run now; invalidates the capture otherwise.
MAYA_EXPORT int check_unsafe();
// Adds a node to the graph the stream captures into.
MAYA_EXPORT Node* capture_node(Stream& stream, NodeType type, const trace::Record& record);
// What the node captured last does to values, at each launch of the graph.
void capture_moves(Stream& stream, std::function<void()> move);
// A kernel of a graph runs: the op it is this time.
std::uint32_t op_of_replay(Function& function, const Geometry& geometry, void* const* arguments);
MAYA_EXPORT Graph* graph_create();
MAYA_EXPORT int graph_destroy(void* handle);
inline Node* node_of(void* handle) { return state().nodes.find(handle); }
inline Graph* graph_of(void* handle) { return state().graphs.find(handle); }
// What a node was given, as the caller's structure, to be handed back when it asks.
template <class Parameters>
void keep(Node& node, const Parameters& p) {
  const char* bytes = reinterpret_cast<const char*>(&p);
  node.parameters.assign(bytes, bytes + sizeof p);
}
MAYA_EXPORT int graph_add(void* graph, NodeType type, std::span<void* const> after, Node*& node);
MAYA_EXPORT int graph_instantiate(void* graph, GraphExec*& executable);
MAYA_EXPORT int graph_update(void* executable, void* graph);
MAYA_EXPORT int graph_launch(void* executable, void* stream);
MAYA_EXPORT int graph_exec_destroy(void* handle);
// A copy whose nodes have the same places.
MAYA_EXPORT Graph* graph_clone(const Graph& graph);
// Adds edges from[i] -> to[i], or removes them.
MAYA_EXPORT int graph_connect(void* graph, void* const* from, void* const* to, std::size_t count,
                              bool join);
MAYA_EXPORT std::vector<Node*> nodes_of(const Graph& graph, bool roots_only);
MAYA_EXPORT std::vector<Node*> nodes_before(const Node& node);
MAYA_EXPORT std::vector<Node*> nodes_after(const Node& node);
// As CUDA lists nodes: without `out` only their count, else as many as fit and nulls behind them.
MAYA_EXPORT int list_nodes(const std::vector<Node*>& nodes, void** out, std::size_t* count);
MAYA_EXPORT int graph_print(void* graph, const char* path);  // in the language of Graphviz
// A node of the graph this executable was made from has other parameters now.
MAYA_EXPORT int executable_changed(void* executable, Node& node);
// Nodes the stream's next captured one will wait for; the list is the thread's until its next call.
MAYA_EXPORT int capture_info(void* stream, int* status, std::uint64_t* id, Graph** graph,
                             const std::vector<void*>*& after);
MAYA_EXPORT int capture_depend(void* stream, void* const* nodes, std::size_t count, bool replace);
// What a node stands for. A child graph is copied unless it is given away; bodies of a conditional
// run once.
MAYA_EXPORT int node_child(Node& node, void* graph, bool give_away = false);
MAYA_EXPORT int node_bodies(Node& node, unsigned count, void**& graphs);
MAYA_EXPORT int node_allocation(Node& node, std::uint64_t bytes, std::uint64_t& address);
MAYA_EXPORT std::uint64_t new_conditional(void* graph);
// Op record for a kernel, copy or fill node.
MAYA_EXPORT int node_kernel(Node& node, Function& function, const Geometry& geometry,
                            void* const* arguments);
MAYA_EXPORT int node_kernel_packed(Node& node, Function& function, const Geometry& geometry,
                                   const void* buffer, std::size_t bytes);
MAYA_EXPORT int node_copy(Node& node, const Area& area);
MAYA_EXPORT int node_fill(Node& node, std::uint64_t bytes);

// Puts an op on a stream or into the graph it captures.
MAYA_EXPORT int enqueue(Stream& stream, trace::Kind kind, std::uint32_t op, std::uint8_t flags = 0,
                        std::uint16_t aux = 0, NodeType node = NodeType::kernel);
MAYA_EXPORT double modelled_op_ns(std::uint32_t op);

}  // namespace maya::session
