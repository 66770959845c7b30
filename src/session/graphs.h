// Stream capture and CUDA graphs.
//
// A graph is a list of nodes with edges. It is captured from streams or built node by node; an
// executable is made of it, and each launch of that is one record with the ops its kernels are at
// this launch. Nodes are changed through their handles; an executable takes the change over at its
// next launch.
#pragma once

#include <span>
#include <string_view>

#include "session/kernels.h"

namespace maya::session {

// Capture ----------------------------------------------------------------------------------------

// Capture modes: 0 global, 1 thread local, 2 relaxed. They say which calls that are unsafe during a
// capture (allocations, synchronization) fail, and in which threads.
MAYA_EXPORT int capture_begin(void* stream, int mode);
// Into a graph that exists, behind some of its nodes.
MAYA_EXPORT int capture_begin_into(void* stream, int mode, void* graph, void* const* after,
                                   std::size_t count);
MAYA_EXPORT int capture_end(void* stream, void*& graph);
// Exchanges the calling thread's mode (cudaThreadExchangeStreamCaptureMode).
MAYA_EXPORT int capture_exchange_mode(int* mode);

struct CaptureState {
  int status{};  // 0 none, 1 active, 2 invalidated
  std::uint64_t id{};
  void* graph{};
  // Nodes the next captured one will wait for; the list is the thread's until its next call.
  std::span<void* const> after;
};
MAYA_EXPORT int capture_state(void* stream, CaptureState& state);
MAYA_EXPORT int capture_depend(void* stream, void* const* nodes, std::size_t count, bool replace);

// Graphs -----------------------------------------------------------------------------------------

MAYA_EXPORT int graph_create(void*& graph);
MAYA_EXPORT int graph_destroy(void* graph);
MAYA_EXPORT bool valid_graph(void* graph);
// A copy whose nodes have the same places.
MAYA_EXPORT int graph_clone(void* graph, void*& clone);
MAYA_EXPORT int graph_node_in_clone(void* node, void* clone, void*& found);
// Lists as CUDA does: without `out` only the count, else as many as fit and nulls behind them.
MAYA_EXPORT int graph_nodes(void* graph, bool roots_only, void** out, std::size_t* count);
MAYA_EXPORT int graph_edges(void* graph, void** from, void** to, std::size_t* count);
// Adds edges from[i] -> to[i], or removes them.
MAYA_EXPORT int graph_connect(void* graph, void* const* from, void* const* to, std::size_t count,
                              bool join);
MAYA_EXPORT int graph_print(void* graph, const char* path);  // in the language of Graphviz
MAYA_EXPORT int graph_conditional(void* graph, unsigned long long* handle);

MAYA_EXPORT int graph_instantiate(void* graph, void*& executable);
MAYA_EXPORT int graph_update(void* executable, void* graph);
MAYA_EXPORT int graph_launch(void* executable, void* stream);
MAYA_EXPORT int graph_exec_destroy(void* executable);
MAYA_EXPORT bool valid_executable(void* executable);

// Nodes ------------------------------------------------------------------------------------------

enum class NodeType : int {  // numbers as in CUDA
  kernel = 0,
  memcpy = 1,
  memset = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait_event = 6,
  event_record = 7,
  semaphore_signal = 8,
  semaphore_wait = 9,
  mem_alloc = 10,
  mem_free = 11,
  conditional = 13,
};

// An empty node, to be filled by one of the calls below.
MAYA_EXPORT int node_add(void* graph, NodeType type, void* const* after, std::size_t count,
                         void*& node);
MAYA_EXPORT int node_remove(void* node);
MAYA_EXPORT bool valid_node(void* node);
MAYA_EXPORT int node_type(void* node, int* type);
MAYA_EXPORT int node_dependencies(void* node, void** out, std::size_t* count);
MAYA_EXPORT int node_dependents(void* node, void** out, std::size_t* count);

// What a node does.
MAYA_EXPORT int node_kernel(void* node, void* function, const Geometry& geometry,
                            void* const* arguments);
MAYA_EXPORT int node_kernel(void* node, void* function, const Geometry& geometry,
                            const PackedArguments& arguments);
MAYA_EXPORT int node_copy(void* node, const Area& area);
MAYA_EXPORT int node_fill(void* node, std::uint64_t bytes);
MAYA_EXPORT int node_host(void* node, void (*function)(void*), void* data);
// A child graph is copied unless it is given away.
MAYA_EXPORT int node_child(void* node, void* graph, bool give_away = false);
MAYA_EXPORT int node_child_graph(void* node, void** graph);
// Bodies of a conditional node, made once. They run once per launch.
MAYA_EXPORT int node_bodies(void* node, unsigned count, void**& graphs);
MAYA_EXPORT int node_allocation(void* node, std::uint64_t bytes, std::uint64_t& address);
// The node's own copies of its kernel's arguments.
MAYA_EXPORT void** node_arguments(void* node);

// The caller's description of a node, kept to be handed back when it asks.
MAYA_EXPORT int node_keep(void* node, std::string_view description);
MAYA_EXPORT int node_kept(void* node, NodeType type, std::string_view& description);

// A node of the graph this executable was made from has changed.
MAYA_EXPORT int executable_changed(void* executable, void* node);

}  // namespace maya::session
