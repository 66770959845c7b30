// Attention: the fused operation of newer libraries, or the matmul – softmax – matmul graph that
// frontends build.
//
// Forward has two products, S = Q·Kᵀ and O = P·V. Backward computes S again and then dV, dP, dQ and
// dK: five. A causal mask is a comparison of two index tensors (row against column); padding
// compares an index with a length; dropout brings a random generator.
#include <set>

#include "shim/cudnn/graph.h"

namespace maya::shim::cudnn {
namespace {

// cuDNN 9.20 and later say a band mask in one operation, which the fused attention holds in a graph
// of its own.
constexpr int kDiagonalBandMask = 44, kBandLeftBound = 3003, kBandComparison = 3007;

struct Mask {
  bool causal{}, windowed{}, dropout{};
};

// Masks and random generators among everything a descriptor refers to.
void search(const Node& node, Mask& mask) {
  if (node.kind == kDiagonalBandMask) {
    bool left =
        node.find(kBandLeftBound) && node.integer(kBandComparison) != CUDNN_POINTWISE_CMP_GE;
    (left ? mask.windowed : mask.causal) = true;
  }
  if (node.kind == CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR) mask.dropout = true;
  for (const Attribute& attribute : node.attributes)
    for (const NodePtr& child : attribute.children)
      if (child->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR) search(*child, mask);
}

std::optional<Work> fused(const Node& operation) {
  bool forward = operation.kind == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  auto q = operand(operation, forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC
                                      : CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC);
  auto k = operand(operation, forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC
                                      : CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC);
  auto v = operand(operation, forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC
                                      : CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC);
  if (!q || !k || !v || q->rank != 4 || k->rank != 4 || v->rank != 4) return {};
  Attention work;
  work.batch = q->dims[0], work.heads = q->dims[1], work.seq_q = q->dims[2],
  work.head_dim = q->dims[3];
  work.kv_heads = k->dims[1], work.seq_k = k->dims[2], work.head_dim_v = v->dims[3];
  work.dtype = dtype_of(q->type);
  work.varlen = q->ragged || operation.child(forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC
                                                     : CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC);
  work.direction = forward ? Direction::forward : Direction::backward;
  work.kernel = AttentionKernel::cudnn;
  Mask mask;
  search(operation, mask);
  work.causal = mask.causal, work.dropout = mask.dropout;
  return work;
}

int mode_of(const Node& operation) {
  const Node* pointwise = operation.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  return pointwise ? static_cast<int>(pointwise->integer(CUDNN_ATTR_POINTWISE_MODE)) : -1;
}

// Follows what is computed from index tensors alone (constants may join in).
Mask mask_of(const Node& graph) {
  Mask mask;
  search(graph, mask);
  std::set<std::int64_t> from_index;
  for (const Node* operation : operations(graph)) {
    if (operation->kind == CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR ||
        operation->kind == CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR)
      mask.causal = true;
    if (operation->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) continue;
    int mode = mode_of(*operation);
    auto result = operand(*operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    auto x = operand(*operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    auto b = operand(*operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (!result) continue;
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      from_index.insert(result->uid);
      continue;
    }
    bool left = x && from_index.contains(x->uid), right = b && from_index.contains(b->uid);
    bool compare = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE;
    if (compare && left && right) mask.causal = true;
    bool arithmetic = mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_SUB ||
                      mode == CUDNN_POINTWISE_IDENTITY;
    if (arithmetic && (left || right)) from_index.insert(result->uid);
  }
  return mask;
}

}  // namespace

std::optional<Work> as_attention(const Node& graph) {
  std::vector<const Node*> products;
  bool softmax = false;
  for (const Node* operation : operations(graph)) {
    switch (operation->kind) {
      case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
        return fused(*operation);
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        products.push_back(operation);
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        softmax |= mode_of(*operation) == CUDNN_POINTWISE_EXP;
        break;
      default:
        break;
    }
  }
  if (products.size() < 2 || !softmax) return {};
  auto q = operand(*products[0], CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  auto k = operand(*products[0], CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  auto s = operand(*products[0], CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  if (!q || !k || !s || q->rank != 4 || k->rank != 4 || s->rank != 4) return {};
  Attention work;
  work.batch = s->dims[0], work.heads = s->dims[1], work.seq_q = s->dims[2],
  work.seq_k = s->dims[3];
  work.head_dim = q->dims[3], work.kv_heads = k->dims[1];
  work.head_dim_v = work.head_dim;
  work.direction = products.size() > 2 ? Direction::backward : Direction::forward;
  for (std::size_t i = 1; i < products.size(); ++i) {
    auto a = operand(*products[i], CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    auto c = operand(*products[i], CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    if (!a || !c || c->rank != 4 || a->rank != 4) continue;
    if (work.direction == Direction::forward)
      work.head_dim_v = c->dims[3];  // O
    else if (c->dims[2] == s->dims[2] && c->dims[3] == s->dims[3] && i > 1)
      work.head_dim_v = a->dims[3];  // dP = dO·Vᵀ
  }
  // Quantized graphs scale Q before the product; the stored type is what moves and what the tensor
  // cores take.
  work.dtype = dtype_of(q->type);
  if (q->is_virtual)
    for (const Node* operation : operations(graph))
      for (const TensorView& view : inputs(*operation))
        if (!view.is_virtual && is_f8(dtype_of(view.type))) work.dtype = dtype_of(view.type);
  Mask mask = mask_of(graph);
  work.causal = mask.causal;
  work.varlen = q->ragged;
  work.dropout = mask.dropout;
  work.kernel = AttentionKernel::cudnn;
  return work;
}

}  // namespace maya::shim::cudnn
