#include "session/testing/device.h"

namespace maya::session {
namespace {

void count(void* calls) { ++*static_cast<int*>(calls); }

class Graphs : public OnDevice {
 protected:
  void SetUp() override { ASSERT_EQ(graph_create(graph), 0); }
  void TearDown() override { graph_destroy(graph); }
  void* add(NodeType type, std::vector<void*> after = {}) {
    void* node = nullptr;
    EXPECT_EQ(node_add(graph, type, after.data(), after.size(), node), 0);
    return node;
  }
  TestStream stream;
  void* graph = nullptr;
};

TEST_F(Graphs, ListNodesRootsAndEdges) {
  void *a = add(NodeType::empty), *b = add(NodeType::empty, {a}), *c = add(NodeType::empty, {a, b});
  std::size_t n = 0;
  ASSERT_EQ(graph_nodes(graph, false, nullptr, &n), 0);
  EXPECT_EQ(n, 3u);
  void* found[4] = {c, c, c, c};
  n = 4;
  ASSERT_EQ(graph_nodes(graph, true, found, &n), 0);
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(found[0], a);
  EXPECT_EQ(found[3], nullptr) << "CUDA clears what it does not fill";
  n = 4;
  ASSERT_EQ(node_dependencies(c, found, &n), 0);
  EXPECT_EQ(n, 2u);
  n = 4;
  ASSERT_EQ(node_dependents(a, found, &n), 0);
  EXPECT_EQ(n, 2u);
}

TEST_F(Graphs, NodesOfAnotherGraphAreNoDependencies) {
  void *other = nullptr, *foreign = nullptr, *node = nullptr;
  ASSERT_EQ(graph_create(other), 0);
  ASSERT_EQ(node_add(other, NodeType::empty, nullptr, 0, foreign), 0);
  EXPECT_EQ(node_add(graph, NodeType::empty, &foreign, 1, node), code::invalid_value);
  void* own = add(NodeType::empty);
  EXPECT_EQ(graph_connect(graph, &own, &foreign, 1, true), code::invalid_value);
  graph_destroy(other);
}

TEST_F(Graphs, EdgesAreAddedAndRemoved) {
  void *a = add(NodeType::empty), *b = add(NodeType::empty);
  EXPECT_EQ(graph_connect(graph, &a, &b, 1, false), code::invalid_value) << "there is none";
  ASSERT_EQ(graph_connect(graph, &a, &b, 1, true), 0);
  std::size_t edges = 0;
  ASSERT_EQ(graph_edges(graph, nullptr, nullptr, &edges), 0);
  EXPECT_EQ(edges, 1u);
  EXPECT_EQ(graph_connect(graph, &a, &b, 1, false), 0);
}

TEST_F(Graphs, HostNodesRunAtEachLaunch) {
  int calls = 0;
  ASSERT_EQ(node_host(add(NodeType::host), count, &calls), 0);
  void* executable = nullptr;
  ASSERT_EQ(graph_instantiate(graph, executable), 0);
  EXPECT_EQ(calls, 0) << "making a graph runs nothing";
  ASSERT_EQ(graph_launch(executable, stream.handle), 0);
  ASSERT_EQ(graph_launch(executable, stream.handle), 0);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(graph_exec_destroy(executable), 0);
  EXPECT_EQ(graph_launch(executable, stream.handle), code::invalid_value);
}

TEST_F(Graphs, AnExecutableOutlivesItsGraph) {
  int calls = 0;
  void *own = nullptr, *node = nullptr, *executable = nullptr;
  ASSERT_EQ(graph_create(own), 0);
  ASSERT_EQ(node_add(own, NodeType::host, nullptr, 0, node), 0);
  ASSERT_EQ(node_host(node, count, &calls), 0);
  ASSERT_EQ(graph_instantiate(own, executable), 0);
  ASSERT_EQ(graph_destroy(own), 0);
  EXPECT_FALSE(valid_graph(own));
  EXPECT_FALSE(valid_node(node));
  ASSERT_EQ(graph_launch(executable, stream.handle), 0);
  EXPECT_EQ(calls, 1);
  graph_exec_destroy(executable);
}

TEST_F(Graphs, AnExecutableIsUpdatedFromAGraphOfTheSameShapeOnly) {
  add(NodeType::empty);
  void *executable = nullptr, *clone = nullptr;
  ASSERT_EQ(graph_instantiate(graph, executable), 0);
  ASSERT_EQ(graph_clone(graph, clone), 0);
  EXPECT_EQ(graph_update(executable, clone), 0);
  add(NodeType::empty);
  EXPECT_EQ(graph_update(executable, graph), code::graph_update_failure);
  graph_destroy(clone);
  graph_exec_destroy(executable);
}

TEST_F(Graphs, ClonesKeepThePlacesOfNodes) {
  void *a = add(NodeType::empty), *b = add(NodeType::host, {a});
  void *clone = nullptr, *found = nullptr;
  ASSERT_EQ(graph_clone(graph, clone), 0);
  ASSERT_EQ(graph_node_in_clone(b, clone, found), 0);
  EXPECT_NE(found, b);
  int type = -1;
  ASSERT_EQ(node_type(found, &type), 0);
  EXPECT_EQ(type, static_cast<int>(NodeType::host));
  graph_destroy(clone);
}

TEST_F(Graphs, RemovedNodesAreNeitherListedNorRun) {
  int calls = 0;
  void* node = add(NodeType::host);
  ASSERT_EQ(node_host(node, count, &calls), 0);
  ASSERT_EQ(node_remove(node), 0);
  std::size_t n = 9;
  ASSERT_EQ(graph_nodes(graph, false, nullptr, &n), 0);
  EXPECT_EQ(n, 0u);
  void* executable = nullptr;
  ASSERT_EQ(graph_instantiate(graph, executable), 0);
  ASSERT_EQ(graph_launch(executable, stream.handle), 0);
  EXPECT_EQ(calls, 0);
  graph_exec_destroy(executable);
}

TEST_F(Graphs, AChildGraphIsCopiedUnlessItIsGivenAway) {
  void *child = nullptr, *held = nullptr;
  ASSERT_EQ(graph_create(child), 0);
  void* node = add(NodeType::graph);
  ASSERT_EQ(node_child(node, child), 0);
  ASSERT_EQ(node_child_graph(node, &held), 0);
  EXPECT_NE(held, child);
  void* taker = add(NodeType::graph);
  ASSERT_EQ(node_child(taker, child, true), 0);
  ASSERT_EQ(node_child_graph(taker, &held), 0);
  EXPECT_EQ(held, child);
  EXPECT_EQ(node_child(node, graph), code::invalid_value) << "no graph is its own child";
}

}  // namespace
}  // namespace maya::session
