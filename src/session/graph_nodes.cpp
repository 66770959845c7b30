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
    made->child = copy_graph(*node.child);
    if (made->child != nullptr) made->child->owner = &graph;
  }
  return made;
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

}  // namespace

Graph* copy_graph(const Graph& graph) {
  Graph* made = make_graph();
  if (made == nullptr) return nullptr;
  for (const Node* node : graph.nodes) {
    Node* copy = copy_of(*node, *made);
    if (copy == nullptr) return graph_destroy(made), nullptr;
    made->nodes.push_back(copy);
  }
  return made;
}

int graph_clone(void* handle, void*& clone) {
  const Graph* graph = find_graph(handle);
  if (graph == nullptr) return code::invalid_value;
  clone = copy_graph(*graph);
  return clone != nullptr ? code::success : code::out_of_memory;
}

int graph_node_in_clone(void* handle, void* clone, void*& found) {
  const Node* node = find_node(handle);
  const Graph* graph = find_graph(clone);
  if (node == nullptr || graph == nullptr || node->index >= graph->nodes.size())
    return code::invalid_value;
  found = graph->nodes[node->index];
  return code::success;
}

int node_child(void* handle, void* graph, bool give_away) {
  Node* found = find_node(handle);
  Graph* given = find_graph(graph);
  if (found == nullptr) return code::invalid_value;
  Node& node = *found;
  if (given == nullptr || given == node.graph) return code::invalid_value;
  if (given == node.child) return code::success;
  Graph* child = give_away ? given : copy_graph(*given);
  if (child == nullptr) return code::out_of_memory;
  child->owner = node.graph;
  if (node.child != nullptr) graph_destroy(node.child);
  node.child = child;
  return code::success;
}

int node_child_graph(void* handle, void** graph) {
  const Node* node = find_node(handle);
  if (node == nullptr || graph == nullptr || node->type != NodeType::graph)
    return code::invalid_value;
  *graph = node->child;
  return code::success;
}

int node_bodies(void* handle, unsigned count, void**& graphs) {
  Node* found = find_node(handle);
  if (found == nullptr) return code::invalid_value;
  Node& node = *found;
  if (node.child != nullptr) return code::success;
  graphs = new void*[std::max(1u, count)];  // belongs to the node for the life of the process
  for (unsigned i = 0; i < std::max(1u, count); ++i) {
    Graph* body = make_graph();
    if (body == nullptr) return code::out_of_memory;
    body->owner = node.graph;
    graphs[i] = body;
    if (i == 0) node.child = body;
  }
  return code::success;
}

int node_allocation(void* handle, std::uint64_t bytes, std::uint64_t& address) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  auto allocation = state().memory.allocate(thread().device, bytes, MemoryKind::pool);
  if (!allocation) return code::out_of_memory;
  node->address = address = allocation->address;
  node->bytes = bytes;
  return code::success;
}

int graph_conditional(void* graph, unsigned long long* handle) {
  if (handle == nullptr || find_graph(graph) == nullptr) return code::invalid_value;
  *handle = state().next_unique.fetch_add(1);
  return code::success;
}

int node_remove(void* handle) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  node->removed = true;
  return code::success;
}

bool valid_node(void* handle) { return find_node(handle) != nullptr; }

int node_type(void* handle, int* type) {
  const Node* node = find_node(handle);
  if (node == nullptr || type == nullptr) return code::invalid_value;
  *type = static_cast<int>(node->type);
  return code::success;
}

int node_host(void* handle, void (*function)(void*), void* data) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  node->host = function, node->host_data = data;
  node->record.kind = trace::Kind::host_function;
  return code::success;
}

void** node_arguments(void* handle) {
  Node* node = find_node(handle);
  return node != nullptr ? node->argument_pointers.data() : nullptr;
}

int node_keep(void* handle, std::string_view description) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  node->parameters.assign(description.begin(), description.end());
  return code::success;
}

int node_kept(void* handle, NodeType type, std::string_view& description) {
  const Node* node = find_node(handle);
  if (node == nullptr || node->type != type) return code::invalid_value;
  description = {node->parameters.data(), node->parameters.size()};
  return code::success;
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

int node_dependencies(void* handle, void** out, std::size_t* count) {
  const Node* node = find_node(handle);
  return node == nullptr ? code::invalid_value : list_nodes(nodes_before(*node), out, count);
}

int node_dependents(void* handle, void** out, std::size_t* count) {
  const Node* node = find_node(handle);
  return node == nullptr ? code::invalid_value : list_nodes(nodes_after(*node), out, count);
}

int graph_nodes(void* handle, bool roots_only, void** out, std::size_t* count) {
  const Graph* graph = find_graph(handle);
  return graph == nullptr ? code::invalid_value
                          : list_nodes(nodes_of(*graph, roots_only), out, count);
}

int graph_edges(void* handle, void** from, void** to, std::size_t* count) {
  const Graph* graph = find_graph(handle);
  if (graph == nullptr || count == nullptr) return code::invalid_value;
  const bool wanted = from != nullptr && to != nullptr;
  std::size_t found = 0;
  for (Node* node : nodes_of(*graph, false))
    for (Node* before : nodes_before(*node)) {
      if (wanted && found < *count) from[found] = before, to[found] = node;
      ++found;
    }
  *count = wanted ? std::min(*count, found) : found;
  return code::success;
}

int executable_changed(void* handle, void* node) {
  const Node* changed = find_node(node);
  GraphExec* executable = state().executables.find(handle);
  if (executable == nullptr || changed == nullptr) return code::invalid_value;
  // A program changes all nodes one after the other: what follows from them is worked out once, at
  // the launch.
  Graph* graph = changed->graph;
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
