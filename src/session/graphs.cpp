// CUDA graphs: captured or built by hand, then launched as one unit.
#include <algorithm>
#include <functional>

#include "session/calls.h"
#include "session/host_clock.h"
#include "session/host_memory.h"
#include "session/stop.h"

namespace maya::session {
namespace {

bool live(const Capture* capture) { return capture != nullptr && capture->graph != nullptr; }

Replayed replayed_of(const Node& node, std::size_t place) {
  Replayed r{node.function,  node.geometry,
             node.arguments, {},
             node.move,      static_cast<std::uint32_t>(place)};
  for (auto& bytes : r.arguments) r.pointers.push_back(bytes.data());
  return r;
}

// A trace graph of the nodes that do something; pure ordering nodes are folded into their
// successors' edges.
void flatten(const Graph& graph, GraphExec& out, std::vector<std::vector<std::uint32_t>>& tail_of,
             const std::vector<std::uint32_t>& entry) {
  tail_of.assign(graph.nodes.size(), {});
  std::vector<bool> done(graph.nodes.size());
  // Nodes added by hand may be out of order: repeat until all predecessors are there.
  std::function<void(std::uint32_t)> visit = [&](std::uint32_t i) {
    if (done[i]) return;
    done[i] = true;
    const Node& node = *graph.nodes[i];
    if (node.removed) return;
    std::vector<std::uint32_t> after;
    for (auto before : node.after) {
      if (before >= graph.nodes.size()) continue;
      visit(before);
      after.insert(after.end(), tail_of[before].begin(), tail_of[before].end());
    }
    if (after.empty()) after = entry;
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (node.child != nullptr) {
      std::vector<std::vector<std::uint32_t>> inner;
      flatten(*node.child, out, inner, after);
      for (auto& tips : inner) tail_of[i].insert(tail_of[i].end(), tips.begin(), tips.end());
      if (tail_of[i].empty()) tail_of[i] = after;
      return;
    }
    if (node.type == NodeType::host && node.host != nullptr)
      out.host_functions.emplace_back(node.host, node.host_data);
    if (node.record.kind == trace::Kind::none) {
      tail_of[i] = after;
      return;
    }
    if (node.function != nullptr || node.move)
      out.replayed.push_back(replayed_of(node, out.recorded.nodes.size()));
    out.recorded.nodes.push_back({node.record, after});
    tail_of[i] = {static_cast<std::uint32_t>(out.recorded.nodes.size() - 1)};
  };
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) visit(i);
}

// Longest path through the graph in modelled time.
double modelled(const trace::Graph& graph) {
  std::vector<double> end(graph.nodes.size());
  double last = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    double start = 0;
    for (auto before : graph.nodes[i].after) start = std::max(start, end[before]);
    auto kind = graph.nodes[i].record.kind;
    bool op = kind == trace::Kind::launch || kind == trace::Kind::copy || kind == trace::Kind::fill;
    end[i] = start + (op ? modelled_op_ns(graph.nodes[i].record.value) : 0);
    last = std::max(last, end[i]);
  }
  return last;
}

Node* add_node(Graph& graph, NodeType type, const trace::Record& record,
               std::vector<std::uint32_t> after) {
  Node* node = state().nodes.create();
  if (node == nullptr) return nullptr;
  node->type = type;
  node->graph = &graph;
  node->index = static_cast<std::uint32_t>(graph.nodes.size());
  node->record = record;
  node->after = std::move(after);
  graph.nodes.push_back(node);
  return node;
}

void fill_executable(GraphExec& executable, const Graph& graph) {
  std::vector<std::vector<std::uint32_t>> tails;
  executable.host_functions.clear();
  executable.recorded.nodes.clear();
  executable.replayed.clear();
  executable.versions.clear();
  flatten(graph, executable, tails, {});
  executable.model_ns = modelled(executable.recorded);
  executable.definition = state().recorder.graph(executable.recorded);
  executable.source = graph.nodes;
  executable.changed = nullptr;
}

// The graph with the ops that its kernels are at this launch: an engine exchanges the lengths that
// attention reads, not the graph. What the nodes do to values is done on the way.
GraphExec::Version replay(GraphExec& executable) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> changed;  // node, op
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (Replayed& r : executable.replayed) {
    if (r.move) r.move();
    if (r.function == nullptr) continue;
    const std::uint32_t op = op_of_replay(*r.function, r.geometry, r.pointers.data());
    if (op == executable.recorded.nodes[r.node].record.value) continue;
    changed.emplace_back(r.node, op);
    hash = (hash ^ (std::uint64_t{r.node} << 32 | op)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  if (changed.empty()) return {executable.definition, executable.model_ns};
  auto [found, made] = executable.versions.try_emplace(hash);
  if (made) {
    trace::Graph now = executable.recorded;
    for (auto [node, op] : changed) now.nodes[node].record.value = op;
    found->second = {state().recorder.graph(now), modelled(now)};
  }
  return found->second;
}

}  // namespace

int check_unsafe() {
  State& s = state();
  if (s.captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return code::success;
  Thread& t = thread();
  if (t.capture_mode == 2) return code::success;
  std::lock_guard guard(s.mutex);
  Capture* hit = nullptr;
  s.streams.each([&](Stream& stream) {
    if (!live(stream.capture) || stream.capture->mode == 2) return;
    // Global captures forbid the call to every thread, thread-local ones to their own.
    bool own = stream.capture->thread == thread_number();
    if (own || (stream.capture->mode == 0 && t.capture_mode == 0)) hit = stream.capture;
  });
  if (hit == nullptr) return code::success;
  hit->invalidated = true;
  return code::capture_unsupported;
}

namespace {

int begin_capture(void* handle, int mode, Graph* into, const std::vector<Node*>& after) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  if (stream->legacy) return code::capture_implicit;
  if (mode < 0 || mode > 2) return code::invalid_value;
  if (stream->capture != nullptr) return code::capture_isolation;
  State& s = state();
  auto* capture = new Capture;  // a few hundred bytes each; events may point to them for good
  capture->graph = into != nullptr ? into : make_graph();
  if (capture->graph == nullptr) return delete capture, code::out_of_memory;
  capture->mode = mode;
  capture->id = s.next_unique.fetch_add(1);
  capture->origin = stream;
  capture->thread = thread_number();
  stream->capture = capture;
  stream->tips.clear();
  for (const Node* node : after)
    if (node != nullptr && node->graph == capture->graph) stream->tips.push_back(node->index);
  s.captures.fetch_add(1);
  return code::success;
}

}  // namespace

int capture_begin(void* stream, int mode) { return begin_capture(stream, mode, nullptr, {}); }

int capture_begin_into(void* stream, int mode, void* graph, void* const* after, std::size_t count) {
  Graph* into = find_graph(graph);
  if (into == nullptr || count > into->nodes.size() ||
      (count > 0 && !mapped(after, count * sizeof *after)))
    return code::invalid_value;
  std::vector<Node*> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(find_node(after[i]));
  return begin_capture(stream, mode, into, nodes);
}

int capture_exchange_mode(int* mode) {
  if (mode == nullptr || *mode < 0 || *mode > 2) return code::invalid_value;
  std::swap(thread().capture_mode, *mode);
  return code::success;
}

int capture_end(void* handle, void*& graph) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  Capture* capture = stream->capture;
  graph = nullptr;
  if (!live(capture)) return code::not_permitted;
  if (capture->origin != stream) return code::capture_unmatched;
  if (capture->mode != 2 && capture->thread != thread_number()) return code::capture_wrong_thread;
  State& s = state();
  std::lock_guard guard(s.mutex);
  Graph* captured = capture->graph;
  // Every stream that joined must have been joined back: its tips must lead to the origin's.
  std::vector<bool> reached(captured->nodes.size());
  std::vector<std::uint32_t> open(stream->tips.begin(), stream->tips.end());
  while (!open.empty()) {
    std::uint32_t i = open.back();
    open.pop_back();
    if (i >= reached.size() || reached[i]) continue;
    reached[i] = true;
    for (auto before : captured->nodes[i]->after) open.push_back(before);
  }
  bool joined = true;
  s.streams.each([&](Stream& other) {
    if (other.capture != capture) return;
    if (&other != stream)
      for (auto tip : other.tips)
        if (tip < reached.size() && !reached[tip]) joined = false;
    other.capture = nullptr;
    other.tips.clear();
  });
  capture->graph = nullptr;
  s.captures.fetch_sub(1);
  if (capture->invalidated) return code::capture_invalidated;
  if (!joined) return code::capture_unjoined;
  graph = captured;
  return code::success;
}

int capture_state(void* handle, CaptureState& found) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  found = {};
  if (!live(stream->capture)) {
    if (stream->legacy && state().captures.load(std::memory_order_relaxed) > 0) {
      // Asking about the legacy stream during a capture that it would have to wait for.
      bool blocking = false;
      state().streams.each([&](Stream& s) {
        blocking |= live(s.capture) && !(s.flags & 1) && s.capture->mode != 2;
      });
      if (blocking) return code::capture_implicit;
    }
    return code::success;
  }
  found.status = stream->capture->invalidated ? 2 : 1;
  found.id = stream->capture->id;
  found.graph = stream->capture->graph;
  static thread_local std::vector<void*> after;  // handed out; valid until the thread's next call
  after.clear();
  for (auto tip : stream->tips) after.push_back(stream->capture->graph->nodes[tip]);
  found.after = after;
  return code::success;
}

Node* capture_node(Stream& stream, NodeType type, const trace::Record& record) {
  State& s = state();
  std::lock_guard guard(s.mutex);
  if (!live(stream.capture) || stream.capture->invalidated) return nullptr;
  Node* node = add_node(*stream.capture->graph, type, record, stream.tips);
  if (node != nullptr) stream.tips = {node->index};
  return node;
}

void capture_moves(Stream& stream, std::function<void()> move) {
  State& s = state();
  std::lock_guard guard(s.mutex);
  if (!live(stream.capture) || stream.tips.size() != 1) return;
  stream.capture->graph->nodes[stream.tips[0]]->move = std::move(move);
}

Graph* make_graph() {
  State& s = state();
  Graph* graph = s.graphs.create();
  if (graph != nullptr) graph->unique = s.next_unique.fetch_add(1);
  return graph;
}

int graph_create(void*& handle) {
  handle = make_graph();
  return handle != nullptr ? code::success : code::out_of_memory;
}

bool valid_graph(void* handle) { return find_graph(handle) != nullptr; }

bool valid_executable(void* handle) { return state().executables.find(handle) != nullptr; }

int graph_destroy(void* handle) {
  State& s = state();
  Graph* graph = s.graphs.find(handle);
  if (graph == nullptr) return code::invalid_value;
  s.executables.each([&](GraphExec& executable) {
    if (executable.changed == graph) fill_executable(executable, *graph);
  });
  for (Node* node : graph->nodes) {
    if (node->child != nullptr) graph_destroy(node->child);
    s.nodes.destroy(node);
  }
  s.graphs.destroy(handle);
  return code::success;
}

int node_add(void* handle, NodeType type, void* const* after, std::size_t count, void*& node) {
  if (after == nullptr && count > 0) return code::invalid_value;
  if (int error = touch()) return error;
  State& s = state();
  std::lock_guard guard(s.mutex);
  Graph* graph = s.graphs.find(handle);
  if (graph == nullptr) return code::invalid_value;
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < count; ++i) {
    Node* other = s.nodes.find(after[i]);
    if (other == nullptr || other->graph != graph) return code::invalid_value;
    indices.push_back(other->index);
  }
  node = add_node(*graph, type, {}, std::move(indices));
  return node != nullptr ? code::success : code::out_of_memory;
}

int graph_instantiate(void* handle, void*& made) {
  if (int error = touch()) return error;
  State& s = state();
  Graph* graph = s.graphs.find(handle);
  if (graph == nullptr) return code::invalid_value;
  GraphExec* executable = s.executables.create();
  if (executable == nullptr) return code::out_of_memory;
  fill_executable(*executable, *graph);
  made = executable;
  return code::success;
}

int graph_update(void* executable_handle, void* graph_handle) {
  State& s = state();
  GraphExec* executable = s.executables.find(executable_handle);
  Graph* graph = s.graphs.find(graph_handle);
  if (executable == nullptr || graph == nullptr) return code::invalid_value;
  if (executable->source.size() != graph->nodes.size()) return code::graph_update_failure;
  fill_executable(*executable, *graph);
  return code::success;
}

int graph_launch(void* executable_handle, void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  State& s = state();
  GraphExec* executable = s.executables.find(executable_handle);
  if (executable == nullptr) return code::invalid_value;
  if (executable->changed != nullptr) fill_executable(*executable, *executable->changed);
  if (stream->capture != nullptr) {
    trace::Record record{};
    record.kind = trace::Kind::graph_launch;
    record.value = executable->definition;
    return capture_node(*stream, NodeType::graph, record) ? code::success
                                                          : code::capture_invalidated;
  }
  const GraphExec::Version now = replay(*executable);
  stream->model_ns =
      std::max(stream->model_ns, s.host_model_ns.load(std::memory_order_relaxed)) + now.model_ns;
  if (stop_asked()) [[unlikely]]
    stop_here();
  s.recorder.record(trace::Kind::graph_launch, stream->id, now.definition,
                    stream->legacy ? trace::Flag::legacy : 0);
  for (auto& [function, data] : executable->host_functions) function(data);
  return code::success;
}

int graph_exec_destroy(void* handle) {
  return state().executables.destroy(handle) ? code::success : code::invalid_value;
}

int node_copy(void* handle, const Area& area) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  Copy op;
  op.bytes = static_cast<std::int64_t>(area.width * area.height * area.depth);
  bool to_device = is_device_pointer(area.to), from_device = is_device_pointer(area.from);
  op.direction = to_device && from_device ? CopyDirection::device
                 : to_device              ? CopyDirection::host_to_device
                 : from_device            ? CopyDirection::device_to_host
                                          : CopyDirection::host;
  op.pinned = true;
  node->record.kind = trace::Kind::copy;
  node->record.value = state().recorder.op(op, "cudaGraphMemcpy");
  return code::success;
}

int node_fill(void* handle, std::uint64_t bytes) {
  Node* node = find_node(handle);
  if (node == nullptr) return code::invalid_value;
  node->record.kind = trace::Kind::fill;
  node->record.value =
      state().recorder.op(Fill{static_cast<std::int64_t>(bytes)}, "cudaGraphMemset");
  return code::success;
}

}  // namespace maya::session
