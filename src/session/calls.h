// What parts of the session ask of each other. Entry points use session.h and its neighbours.
#pragma once

#include <cstdint>
#include <functional>

#include "session/graphs.h"
#include "session/kernels.h"
#include "session/state.h"

namespace maya::session {

// Streams
MAYA_EXPORT int find_stream(void* handle, Stream*& stream);  // resolves 0, 1 and 2
int make_stream(Stream*& stream, unsigned flags, int priority);
void stream_reached(Stream& stream);  // the host waited for all of it
// The host has waited: the ranks meet at the barriers it waited for (meetings.h).
void attend_meetings();

// Puts an op on a stream or into the graph it captures.
int enqueue(Stream& stream, trace::Kind kind, std::uint32_t op, std::uint8_t flags = 0,
            std::uint16_t aux = 0, NodeType node = NodeType::kernel);
double modelled_op_ns(std::uint32_t op);

// Memory
bool pinned_range(const void* address, std::uint64_t& base, std::uint64_t& bytes);
Where where(const void* address);
// Without a stream: the default stream of the memory's device.
void record_allocation(trace::Kind kind, const device::Allocation& allocation,
                       std::uint16_t stream = 0, std::uint8_t flags = 0);
// There is no room: recorded, and the code for it.
int refuse_memory(std::uint64_t bytes, MemoryKind kind);
// Freed memory has no values, and its pages go back to the host.
void drop_values(const device::Allocation& allocation);

// Kernels
inline Function* find_function(void* handle) { return state().functions.find(handle); }
Function* function_of_stub(const void* host);
// The function is unpacked and its decoder prepared; 0 or the error a launch gets.
int resolve(Function& function);
// A kernel of a graph runs: the op it is this time.
std::uint32_t op_of_replay(Function& function, const Geometry& geometry, void* const* arguments);
// What a node of a graph launches.
int set_kernel(Node& node, Function& function, const Geometry& geometry, void* const* arguments);

// Graphs
inline Node* find_node(void* handle) { return state().nodes.find(handle); }
inline Graph* find_graph(void* handle) { return state().graphs.find(handle); }
Graph* make_graph();
Graph* copy_graph(const Graph& graph);
// Whether a call that captures forbid may run now; invalidates the capture otherwise.
int check_unsafe();
// Adds a node to the graph the stream captures into.
Node* capture_node(Stream& stream, NodeType type, const trace::Record& record);
// What the node captured last does to values, at each launch of the graph.
void capture_moves(Stream& stream, std::function<void()> move);

}  // namespace maya::session
