// What an operation graph computes: the op it is, the engines that run it, the plan of one engine.
#pragma once

#include <memory>
#include <vector>

#include "shim/cudnn/node.h"
#include "shim/cudnn/tensor.h"

namespace maya::shim::cudnn {

// Engines of a graph are numbered from 0. An f32 convolution or matmul has two on GPUs with TF32: 0
// rounds its inputs for the tensor cores and says so in its numerical notes, 1 does not. Frameworks
// filter by that note to obey allow_tf32.
std::int64_t engine_count(const Node& graph);
// Engines a program may name; those beyond engine_count() do the same as the last.
constexpr std::int64_t kNumberedEngines = 64;
std::vector<NodePtr> engine_configs(const NodePtr& graph, int mode);
std::vector<int> numerical_notes(const Node& engine);

// The plan of an engine node; nullptr where that engine does not run the graph.
std::unique_ptr<Plan> plan_of(const Node& engine);

// The arithmetic an op is done with.
DType compute_of(const Work& work);

// Reading operations.
struct TensorView : Tensor {
  std::int64_t uid{};
  bool is_virtual{}, by_value{};
  bool ragged{};
  const Node* node{};
};
std::optional<TensorView> tensor(const Node* node);
std::vector<const Node*> operations(const Node& graph);
// Tensors an operation writes / reads, virtual ones included.
std::vector<TensorView> outputs(const Node& operation);
std::vector<TensorView> inputs(const Node& operation);
inline std::optional<TensorView> operand(const Node& operation, int name) {
  return tensor(operation.child(name));
}

// What is fused behind the convolution or product of a graph.
Epilogue epilogue_of(const Node& graph);

// The op of a graph of that shape; nullopt: the graph is something else.
std::optional<Work> as_convolution(const Node& graph, bool tf32);
std::optional<Work> as_attention(const Node& graph);
std::optional<Work> as_normalization(const Node& graph);
std::optional<Work> as_matmul(const Node& graph, bool tf32);
std::optional<Work> as_elementwise(
    const Node& graph);  // reductions, resampling, pointwise: always something

}  // namespace maya::shim::cudnn
