#include "shim/cudnn/graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "shim/cudnn/convolution.h"

namespace maya::shim::cudnn {
namespace {

// Attributes that name a tensor the operation writes; every other tensor attribute is read.
bool is_output(int name) {
  static constexpr std::array kOutputs = {
      int{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      int{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
      int{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
      int{CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
      int{CUDNN_ATTR_OPERATION_POINTWISE_DXDESC},
      int{CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC},
      int{CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC},
      int{CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC},
      int{CUDNN_ATTR_OPERATION_MATMUL_CDESC},
      int{CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
      int{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC},
      int{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC},
      int{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC},
      int{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC},
      int{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS},
      int{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC},
      int{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC},
      int{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC},
      int{CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC},
      int{CUDNN_ATTR_OPERATION_SIGNAL_YDESC},
      int{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC},
      int{CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC},
      int{CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC},
      int{CUDNN_ATTR_OPERATION_NORM_FWD_YDESC},
      int{CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC},
      int{CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC},
      int{CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
      int{CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
      int{CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC},
      int{CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC},
      int{CUDNN_ATTR_OPERATION_RNG_YDESC},
      int{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC},
      int{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC},
      int{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC},
      int{CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC},
      int{CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC},
      int{CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC},
      int{CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC},
      int{CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC},
      int{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC},
      3006,
      3101,
      3102,
      3103,
      3104};  // band mask and softmax of 9.20
  return std::find(kOutputs.begin(), kOutputs.end(), name) != kOutputs.end();
}

// Mean and variance are outputs of a forward norm that trains and inputs of one that does not.
bool writes_statistics(const Node& operation, int name) {
  return operation.kind == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR &&
         (name == CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC ||
          name == CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC) &&
         operation.integer(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
}

std::vector<TensorView> collect(const Node& operation, bool wanted) {
  std::vector<TensorView> found;
  for (const Attribute& attribute : operation.attributes) {
    if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    bool output = is_output(attribute.name) || writes_statistics(operation, attribute.name);
    if (output != wanted) continue;
    for (const NodePtr& child : attribute.children)
      if (auto view = tensor(child.get())) found.push_back(*view);
  }
  return found;
}

// The op, whether tensor cores may round f32, and what the kernel is called.
struct Meaning {
  Work work;
  const char* name;
};
std::optional<Meaning> meaning(const Node& graph, bool tf32) {
  if (auto work = as_attention(graph)) return Meaning{*work, "cudnnBackendExecute(attention)"};
  if (auto work = as_convolution(graph, tf32))
    return Meaning{*work, "cudnnBackendExecute(convolution)"};
  if (auto work = as_normalization(graph))
    return Meaning{*work, "cudnnBackendExecute(normalization)"};
  if (auto work = as_matmul(graph, tf32)) return Meaning{*work, "cudnnBackendExecute(matmul)"};
  if (auto work = as_elementwise(graph)) return Meaning{*work, "cudnnBackendExecute(pointwise)"};
  return {};
}

// cuDNN's support matrix, as far as frameworks ask before they choose cuDNN.
bool supported(const Work& work) {
  if (const auto* attention = std::get_if<Attention>(&work)) {
    int cc = capability();
    bool f8 = is_f8(attention->dtype);
    if (cc < 80 || (f8 && cc < 90)) return false;
    if (!f8 && attention->dtype != DType::f16 && attention->dtype != DType::bf16) return false;
    std::int64_t limit = cc >= 90 ? 256 : 128;
    return attention->head_dim % 8 == 0 && attention->head_dim_v % 8 == 0 &&
           attention->head_dim <= limit && attention->head_dim_v <= limit;
  }
  if (const auto* conv = std::get_if<Convolution>(&work)) {
    if (is_f8(conv->dtype)) return capability() >= 90;
    return conv->dtype != DType::unknown;
  }
  return true;
}

bool has_tf32_twin(const Meaning& meaning) {
  DType compute = DType::unknown;
  if (const auto* conv = std::get_if<Convolution>(&meaning.work)) compute = conv->compute;
  if (const auto* gemm = std::get_if<Gemm>(&meaning.work)) compute = gemm->compute;
  return compute == DType::tf32;
}

std::int64_t workspace_of(const Work& work) {
  if (const auto* conv = std::get_if<Convolution>(&work))
    return static_cast<std::int64_t>(workspace(*conv));
  if (const auto* attention = std::get_if<Attention>(&work)) {
    if (attention->direction == Direction::forward) return 0;
    // Backward accumulates dQ in f32 and keeps a row sum.
    std::int64_t rows = attention->batch * attention->heads * attention->seq_q;
    return rows * (attention->head_dim + 1) * 4;
  }
  return 0;
}

}  // namespace

std::optional<TensorView> tensor(const Node* node) {
  if (!node || node->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return {};
  TensorView view;
  view.node = node;
  view.type = static_cast<int>(node->integer(CUDNN_ATTR_TENSOR_DATA_TYPE));
  auto dims = node->integers(CUDNN_ATTR_TENSOR_DIMENSIONS),
       strides = node->integers(CUDNN_ATTR_TENSOR_STRIDES);
  view.rank = static_cast<int>(std::min({dims.size(), strides.size(), std::size_t{kMaxDims}}));
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i)
    view.dims[i] = dims[i], view.strides[i] = strides[i];
  view.uid = node->integer(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  view.is_virtual = node->integer(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  view.by_value = node->integer(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  view.ragged = node->child(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != nullptr;
  return view;
}

std::vector<const Node*> operations(const Node& graph) {
  std::vector<const Node*> all;
  if (const Attribute* ops = graph.find(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    for (const NodePtr& op : ops->children) all.push_back(op.get());
  return all;
}

std::vector<TensorView> outputs(const Node& operation) { return collect(operation, true); }
std::vector<TensorView> inputs(const Node& operation) { return collect(operation, false); }

std::int64_t engine_count(const Node& graph) {
  auto what = meaning(graph, true);
  if (!what || !supported(what->work)) return 0;
  return has_tf32_twin(*what) ? 2 : 1;
}

std::vector<NodePtr> engine_configs(const NodePtr& graph, int mode) {
  std::vector<NodePtr> configs;
  std::int64_t engines = engine_count(*graph);
  // The fallback list is for when everything else failed: the engine without conditions.
  std::int64_t first = mode == CUDNN_HEUR_MODE_FALLBACK ? engines - 1 : 0;
  for (std::int64_t index = std::max<std::int64_t>(0, first); index < engines; ++index) {
    auto engine = std::make_shared<Node>();
    engine->kind = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    engine->finalized = true;
    Attribute& of = engine->slot(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    of.type = CUDNN_TYPE_BACKEND_DESCRIPTOR, of.count = 1, of.bytes.resize(8),
    of.children = {graph};
    Attribute& number = engine->slot(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    number.type = CUDNN_TYPE_INT64, number.count = 1, number.bytes.resize(8);
    std::memcpy(number.bytes.data(), &index, 8);
    auto config = std::make_shared<Node>();
    config->kind = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    config->finalized = true;
    Attribute& uses = config->slot(CUDNN_ATTR_ENGINECFG_ENGINE);
    uses.type = CUDNN_TYPE_BACKEND_DESCRIPTOR, uses.count = 1, uses.bytes.resize(8),
    uses.children = {engine};
    configs.push_back(config);
  }
  return configs;
}

std::vector<int> numerical_notes(const Node& engine) {
  const Node* graph = engine.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (!graph) return {};
  std::int64_t index = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  auto what = meaning(*graph, index == 0);
  if (!what) return {};
  DType compute = compute_of(what->work);
  bool tensor_core = compute == DType::tf32 || compute == DType::bf16 || is_f8(compute) ||
                     (compute == DType::f16 && capability() >= 70);
  return tensor_core ? std::vector<int>{CUDNN_NUMERICAL_NOTE_TENSOR_CORE} : std::vector<int>{};
}

DType compute_of(const Work& work) {
  if (const auto* conv = std::get_if<Convolution>(&work)) return conv->compute;
  if (const auto* gemm = std::get_if<Gemm>(&work)) return gemm->compute;
  if (const auto* attention = std::get_if<Attention>(&work)) return attention->dtype;
  return DType::f32;
}

std::unique_ptr<Plan> plan_of(const Node& engine) {
  const Node* graph = engine.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  std::int64_t index = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (!graph || index < 0) return nullptr;
  auto what = meaning(*graph, index == 0);
  if (!what || !supported(what->work)) return nullptr;
  auto plan = std::make_unique<Plan>();
  plan->work = what->work, plan->name = what->name, plan->workspace = workspace_of(what->work);
  for (const Node* operation : operations(*graph))
    for (const TensorView& view : outputs(*operation))
      if (!view.is_virtual) plan->outputs.push_back({view.uid, view.bytes()});
  return plan;
}

}  // namespace maya::shim::cudnn
