// Pooling, resampling and ATen's own depthwise convolutions.
#include <algorithm>

#include "decode/operands.h"

namespace maya::decode {
namespace {

struct Rule {
  std::string_view leaf;
  bool backward, channels_last;
  // Parameter positions; images -1: outputs (or inputs, backward) are parameter 0; -2: planes are
  // grid.x.
  int images, channels, in_h, in_w, out_h, out_w, window_h, window_w;
};

constexpr Rule rules[] = {
    {"max_pool_forward_nchw", false, false, -1, 2, 3, 4, 5, 6, 7, 8},
    {"max_pool_forward_nhwc", false, true, 1, 2, 3, 4, 5, 6, 7, 8},
    {"max_pool_backward_nchw", true, false, 2, 3, 4, 5, 6, 7, 8, 9},
    {"max_pool_backward_nhwc", true, true, 2, 3, 4, 5, 6, 7, 8, 9},
    {"avg_pool2d_out_cuda_frame", false, false, -1, 2, 3, 4, 5, 6, 7, 8},
    {"avg_pool2d_out_cuda_frame_nhwc", false, true, -1, 2, 3, 4, 5, 6, 7, 8},
    {"avg_pool2d_backward_out_cuda_frame", true, false, -1, 2, 3, 4, 5, 6, 7, 8},
    {"avg_pool2d_backward_out_cuda_frame_nhwc", true, true, -1, 2, 3, 4, 5, 6, 7, 8},
    {"avg_pool2d_backward_nonoverlap_frame", true, false, -1, 2, 3, 4, 5, 6, 7, 8},
    {"adaptive_average_pool", false, false, -2, -1, 2, 3, 4, 5, -1, -1},
    {"adaptive_average_gradinput", true, false, -2, -1, 2, 3, 4, 5, -1, -1},
    {"atomic_adaptive_average_gradinput", true, false, -2, -1, 2, 3, 4, 5, -1, -1},
    {"adaptivemaxpool", false, false, -2, -1, 3, 4, 5, 6, -1, -1},
    {"adaptivemaxgradinput", true, false, -2, -1, 3, 4, 5, 6, -1, -1},
    {"atomicadaptivemaxgradinput", true, false, -2, -1, 3, 4, 5, 6, -1, -1},
    {"adaptive_average_pool_nhwc", false, true, 2, 3, 4, 5, 6, 7, -1, -1},
    {"adaptive_average_gradinput_nhwc", true, true, 2, 3, 4, 5, 6, 7, -1, -1},
};

DType data_type(const Signature& s) {
  for (const auto& p : s.parameters())
    if (p.dtype != DType::unknown && !is_integer(p.dtype)) return p.dtype;
  return DType::f32;
}

Made depthwise(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  auto signature = std::make_shared<Signature>(kernel, name);
  bool three = contains(leaf, "3d");
  bool weight = contains(leaf, "weight"), backward = !weight && contains(leaf, "backward");
  DType dtype = data_type(*signature);
  // forward (in, out, weight); backward (grad out, grad in, weight); weight (grad out, in, grad
  // weight)
  std::size_t in = weight || backward ? 1 : 0, out = weight || backward ? 0 : 1;
  return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
    Tensor x = signature->tensor(a, in), y = signature->tensor(a, out), w = signature->tensor(a, 2);
    Convolution c;
    c.dtype = c.compute = dtype;
    c.direction = weight     ? Direction::weight_gradient
                  : backward ? Direction::data_gradient
                             : Direction::forward;
    c.n = x.size[0], c.c = x.size[1], c.k = y.size[1];
    const auto& n = signature->integers();
    auto last = [&](std::size_t from_end) {
      return n.size() >= from_end ? static_cast<std::int32_t>(a.integer(n[n.size() - from_end]))
                                  : 1;
    };
    if (three) {
      c.d = x.size[2], c.h = x.size[3], c.w = x.size[4];
      c.kd = static_cast<std::int32_t>(w.size[2]), c.kh = static_cast<std::int32_t>(w.size[3]);
      c.kw = static_cast<std::int32_t>(w.size[4]);
      c.stride_d = last(9), c.stride_h = last(8), c.stride_w = last(7);
      c.pad_d = last(6), c.pad_h = last(5), c.pad_w = last(4);
      c.dilation_d = last(3), c.dilation_h = last(2), c.dilation_w = last(1);
    } else {
      c.h = x.size[2], c.w = x.size[3];
      c.kw = last(8), c.kh = last(7), c.stride_w = last(6), c.stride_h = last(5);
      c.pad_w = last(4), c.pad_h = last(3), c.dilation_w = last(2), c.dilation_h = last(1);
    }
    c.groups = static_cast<std::int32_t>(std::max<std::int64_t>(1, c.c));
    d.op.work = c;
  });
}

}  // namespace

Made prepare_pool(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (starts_with(leaf, "conv_depthwise")) return depthwise(kernel, name);

  auto signature = std::make_shared<Signature>(kernel, name);
  for (const Rule& r : rules) {
    if (leaf != r.leaf) continue;
    DType dtype = data_type(*signature);
    Rule rule = r;
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      Pool work;
      std::int64_t in = a.integer(rule.in_h) * a.integer(rule.in_w);
      std::int64_t out = a.integer(rule.out_h) * a.integer(rule.out_w);
      std::int64_t planes = 1;
      if (rule.images >= 0)
        planes = a.integer(rule.images) * a.integer(rule.channels);
      else if (rule.images == -2)
        planes = static_cast<std::int64_t>(a.grid(0));
      else
        planes = a.integer(0) / std::max<std::int64_t>(1, rule.backward ? in : out);
      work.inputs = planes * in;
      work.outputs = planes * out;
      std::int64_t window = rule.window_h >= 0 ? a.integer(rule.window_h) * a.integer(rule.window_w)
                                               : ceil_div(in, std::max<std::int64_t>(1, out));
      work.window = static_cast<std::int32_t>(std::clamp<std::int64_t>(window, 1, 1 << 20));
      work.dtype = dtype;
      work.direction = rule.backward ? Direction::backward : Direction::forward;
      work.channels_last = rule.channels_last;
      d.op.work = work;
    });
  }

  bool resample = starts_with(leaf, "upsample_");
  bool pool = contains(leaf, "pool") || starts_with(leaf, "adaptive") ||
              starts_with(leaf, "atomicadaptive");
  if (!resample && !pool) return nullptr;
  // The rest carries its sizes in accessors, or one thread per output element.
  bool backward = contains(leaf, "backward") || contains(leaf, "grad");
  DType dtype = data_type(*signature);
  int window = contains(leaf, "bicubic")     ? 16
               : contains(leaf, "trilinear") ? 8
               : contains(leaf, "linear")    ? 4
                                             : 1;
  return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
    Pool work;
    work.dtype = dtype;
    work.direction = backward ? Direction::backward : Direction::forward;
    work.window = window;
    work.channels_last = contains(a.kernel().demangled, "nhwc");
    for (const Tensor& t : signature->tensors(a)) {
      if (t.elements < 0 || is_integer(t.dtype)) continue;
      // Forward reads the input (const) and writes the output, backward the other way round.
      (t.written == backward ? work.inputs : work.outputs) = t.elements;
    }
    auto threads = static_cast<std::int64_t>(a.geometry().threads());
    if (work.outputs == 0) work.outputs = threads;
    if (work.inputs == 0) {
      // upsample_nearest2d…(in, out, planes, h1, w1, h2, w2): the two sizes are neighbours.
      const auto& n = signature->integers();
      if (n.size() >= 5 && contains(a.kernel().demangled, "2d")) {
        // Backward has batch and channels apart.
        bool apart = n.size() >= 6 && backward;
        std::size_t at = apart ? 1 : 0;
        std::int64_t planes = a.integer(n[0]) * (apart ? a.integer(n[1]) : 1);
        std::int64_t first = a.integer(n[at + 1]) * a.integer(n[at + 2]);
        std::int64_t second = a.integer(n[at + 3]) * a.integer(n[at + 4]);
        if (planes > 0 && first > 0 && second > 0 &&
            planes * std::max(first, second) <= threads * 1024) {
          work.inputs = planes * (backward ? second : first);
          work.outputs = planes * (backward ? first : second);
        }
      }
      if (work.inputs == 0) work.inputs = work.outputs;
    }
    d.op.work = work;
  });
}

}  // namespace maya::decode
