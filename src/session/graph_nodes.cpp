// Nodes of graphs that are built or changed by hand: listed, connected, copied, exchanged in an
// executable.
#include <algorithm>
#include <cstdio>

#include "session/calls.h"

namespace maya::session {
namespace {

Node* copy_of(const Node& node, Graph& graph) {
  Node* made = state().nodes.create();
  if (made == nullptr) return nullptr;
  *made = node;
  made->graph = &graph;
  // The argument pointers must lead to the copy's own bytes.
  for (std::size_t i = 0; i < made->arguments.size(); ++i)
    made->argument_pointers[i] = made->arguments[i].data();
  if (node.child != nullptr) {
    made->child = graph_clone(*node.child);
    if (made->child != nullptr) made->child->owner = &graph;
  }
  return made;
}

}  // namespace

Graph* graph_clone(const Graph& graph) {
  Graph* made = graph_create();
  if (made == nullptr) return nullptr;
  for (const Node* node : graph.nodes) {
    Node* copy = copy_of(*node, *made);
    if (copy == nullptr) return graph_destroy(made), nullptr;
    made->nodes.push_back(copy);
  }
  return made;
}

int node_child(Node& node, void* graph, bool give_away) {
  Graph* given = state().graphs.find(graph);
  if (given == nullptr || given == node.graph) return code::invalid_value;
  if (given == node.child) return code::success;
  Graph* child = give_away ? given : graph_clone(*given);
  if (child == nullptr) return code::out_of_memory;
  child->owner = node.graph;
  if (node.child != nullptr) graph_destroy(node.child);
  node.child = child;
  return code::success;
}

int node_bodies(Node& node, unsigned count, void**& graphs) {
  graphs = new void*[std::max(1u, count)];  // belongs to the node for the life of the process
  for (unsigned i = 0; i < std::max(1u, count); ++i) {
    Graph* body = graph_create();
    if (body == nullptr) return code::out_of_memory;
    body->owner = node.graph;
    graphs[i] = body;
    if (i == 0) node.child = body;
  }
  return code::success;
}

int node_allocation(Node& node, std::uint64_t bytes, std::uint64_t& address) {
  auto allocation = state().memory.allocate(thread().device, bytes, device::MemoryKind::pool);
  if (!allocation) return code::out_of_memory;
  node.address = address = allocation->address;
  node.bytes = bytes;
  return code::success;
}

std::uint64_t new_conditional(void* graph) {
  return state().graphs.find(graph) != nullptr ? state().next_unique.fetch_add(1) : 0;
}

int graph_connect(void* graph, void* const* from, void* const* to, std::size_t count, bool join) {
  State& s = state();
  std::lock_guard guard(s.mutex);
  Graph* g = s.graphs.find(graph);
  if (g == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return code::invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    Node* a = s.nodes.find(from[i]);
    Node* b = s.nodes.find(to[i]);
    if (a == nullptr || b == nullptr || a->graph != g || b->graph != g) return code::invalid_value;
    auto found = std::find(b->after.begin(), b->after.end(), a->index);
    if (join && found == b->after.end()) b->after.push_back(a->index);
    if (!join) {
      if (found == b->after.end()) return code::invalid_value;
      b->after.erase(found);
    }
  }
  return code::success;
}

std::vector<Node*> nodes_before(const Node& node) {
  std::vector<Node*> found;
  for (auto index : node.after) found.push_back(node.graph->nodes[index]);
  return found;
}

std::vector<Node*> nodes_after(const Node& node) {
  std::vector<Node*> found;
  for (Node* other : node.graph->nodes)
    if (!other->removed &&
        std::find(other->after.begin(), other->after.end(), node.index) != other->after.end())
      found.push_back(other);
  return found;
}

std::vector<Node*> nodes_of(const Graph& graph, bool roots_only) {
  std::vector<Node*> found;
  for (Node* node : graph.nodes)
    if (!node->removed && (!roots_only || node->after.empty())) found.push_back(node);
  return found;
}

int list_nodes(const std::vector<Node*>& nodes, void** out, std::size_t* count) {
  if (count == nullptr) return code::invalid_value;
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return code::success;
}

int executable_changed(void* handle, Node& node) {
  GraphExec* executable = state().executables.find(handle);
  if (executable == nullptr) return code::invalid_value;
  // A program changes all nodes one after the other: what follows from them is worked out once, at
  // the launch.
  Graph* graph = node.graph;
  while (graph->owner != nullptr) graph = graph->owner;
  executable->changed = graph;
  return code::success;
}

int graph_print(void* handle, const char* path) {
  Graph* graph = state().graphs.find(handle);
  std::FILE* file = graph != nullptr && path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return code::invalid_value;
  std::fprintf(file, "digraph dot {\n");
  for (const Node* node : graph->nodes) {
    std::fprintf(file, "  \"%u\" [label=\"type %d\"];\n", node->index,
                 static_cast<int>(node->type));
    for (auto before : node->after)
      std::fprintf(file, "  \"%u\" -> \"%u\";\n", before, node->index);
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return code::success;
}

int capture_info(void* handle, int* status, std::uint64_t* id, Graph** graph,
                 const std::vector<void*>*& after) {
  int found = 0;
  std::uint64_t number = 0;
  Graph* into = nullptr;
  if (status == nullptr) return code::invalid_value;
  if (int error = capture_status(handle, found, number, into)) return error;
  *status = found;
  if (id != nullptr) *id = number;
  if (graph != nullptr) *graph = into;
  static thread_local std::vector<void*> list;  // handed out; valid until the thread's next call
  list.clear();
  Stream* stream = nullptr;
  find_stream(handle, stream);
  if (into != nullptr && stream != nullptr)
    for (auto tip : stream->tips) list.push_back(into->nodes[tip]);
  after = &list;
  return code::success;
}

int capture_depend(void* handle, void* const* nodes, std::size_t count, bool replace) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  if (stream->capture == nullptr) return code::not_permitted;
  if (replace) stream->tips.clear();
  for (std::size_t i = 0; i < count; ++i) {
    Node* node = state().nodes.find(nodes[i]);
    if (node == nullptr || node->graph != stream->capture->graph) return code::invalid_value;
    stream->tips.push_back(node->index);
  }
  return code::success;
}

}  // namespace maya::session
