// Graphs around one convolution: alone, or with bias, activation and residual fused behind it.
#include "shim/cudnn/convolution.h"
#include "shim/cudnn/graph.h"

namespace maya::shim::cudnn {
namespace {

struct Roles {
  int kind;
  Direction direction;
  int x, w, y, descriptor;
};
constexpr Roles kRoles[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, Direction::forward,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, Direction::data_gradient,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, Direction::weight_gradient,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
};

}  // namespace

Epilogue epilogue_of(const Node& graph) {
  bool bias = false, relu = false, gelu = false, other = false;
  for (const Node* operation : operations(graph)) {
    if (operation->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) continue;
    const Node* pointwise = operation->child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    switch (pointwise ? pointwise->integer(CUDNN_ATTR_POINTWISE_MODE) : -1) {
      case CUDNN_POINTWISE_ADD: {
        auto added = operand(*operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        auto to = operand(*operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        bool vector = added && to && added->elements() < to->elements();
        (vector ? bias : other) = true;
        break;
      }
      case CUDNN_POINTWISE_RELU_FWD:
        relu = true;
        break;
      case CUDNN_POINTWISE_GELU_FWD:
      case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        gelu = true;
        break;
      case CUDNN_POINTWISE_RELU_BWD:
        return Epilogue::relu_grad;
      case CUDNN_POINTWISE_GELU_BWD:
      case CUDNN_POINTWISE_GELU_APPROX_TANH_BWD:
        return Epilogue::gelu_grad;
      case CUDNN_POINTWISE_MUL:
      case CUDNN_POINTWISE_IDENTITY:
        break;  // a scale factor
      default:
        other = true;
    }
  }
  if (other) return Epilogue::other;
  if (relu) return bias ? Epilogue::bias_relu : Epilogue::relu;
  if (gelu) return bias ? Epilogue::bias_gelu : Epilogue::gelu;
  return bias ? Epilogue::bias : Epilogue::none;
}

std::optional<Work> as_convolution(const Node& graph, bool tf32) {
  for (const Node* operation : operations(graph)) {
    for (const Roles& roles : kRoles) {
      if (operation->kind != roles.kind) continue;
      auto x = operand(*operation, roles.x), w = operand(*operation, roles.w),
           y = operand(*operation, roles.y);
      const Node* descriptor = operation->child(roles.descriptor);
      if (!x || !w || !y || !descriptor) return {};
      auto padding = descriptor->integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
      auto stride = descriptor->integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
      auto dilation = descriptor->integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
      if (padding.size() != stride.size() || dilation.size() != stride.size()) return {};
      // The operands decide the arithmetic: x and w forward, dy besides one of them backward.
      DType type = dtype_of(roles.direction == Direction::data_gradient ? y->type : x->type);
      auto work = convolution(*x, std::span(w->dims).first(static_cast<std::size_t>(w->rank)),
                              {padding, stride, dilation}, type, tf32, roles.direction);
      if (!work) return {};
      work->epilogue = epilogue_of(graph);
      return *work;
    }
  }
  return {};
}

}  // namespace maya::shim::cudnn
