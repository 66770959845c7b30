// Layer, RMS, group and batch normalization of ATen, forward and backward.
#include <algorithm>
#include <cstdlib>

#include "decode/rule.h"

namespace maya::decode {
namespace {

using Sizes = std::function<void(const Arguments&, Normalization&)>;

Made norm(const Kernel& kernel, const Name& name, NormKind kind, DType dtype, Direction direction,
          const Sizes& sizes, bool channels_last = false) {
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Normalization work;
    work.kind = kind;
    work.dtype = dtype;
    work.direction = direction;
    work.channels_last = channels_last;
    sizes(a, work);
    d.op.work = work;
  });
}

// One pass over the data that belongs to a normalization but is not one by itself.
Made pass(const Kernel& kernel, const Name& name, DType dtype, int reads, int writes,
          const std::function<std::int64_t(const Arguments&)>& elements, int flops = 4) {
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Pointwise work;
    work.elements = elements(a);
    work.inputs = std::max(1, reads);
    work.outputs = std::max(1, writes);
    std::int64_t size = std::max(1, bits(dtype) / 8);
    work.bytes_read = work.elements * reads * size;
    work.bytes_written = work.elements * writes * size;
    work.dtype = dtype;
    work.flops_per_element = flops;
    d.op.work = work;
  });
}

Made moments(const Kernel& kernel, const Name& name, DType dtype,
             const std::function<void(const Arguments&, Reduction&)>& sizes) {
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Reduction work;
    work.in = dtype;
    work.out = DType::f32;
    work.kind = ReduceKind::other;
    sizes(a, work);
    d.op.work = work;
  });
}

// Sizes of a packed tensor accessor: { T* data; index sizes[rank]; index strides[rank]; }
std::int64_t accessor_size(const Arguments& a, std::size_t parameter, int dimension, int rank) {
  std::size_t width = a.size(parameter) >= 8u + 16u * rank ? 8 : 4;
  return width == 8 ? a.at<std::int64_t>(parameter, 8 + 8 * dimension)
                    : a.at<std::int32_t>(parameter, 8 + 4 * dimension);
}

// Accessors are not pointers in the signature and too large for `scalars`: key on their sizes.
std::vector<KeyPart> accessor_key(const Kernel& kernel, std::size_t parameter, int rank) {
  if (parameter >= kernel.parameter_sizes.size()) return {};
  std::uint16_t width = kernel.parameter_sizes[parameter] >= 8 + 16 * rank ? 8 : 4;
  return {{static_cast<std::uint8_t>(parameter), 8, static_cast<std::uint16_t>(width * rank)}};
}

Made batch_norm(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  bool last = contains(leaf, "channels_last");
  auto accessor = [&](NormKind kind, Direction direction, DType dtype) -> Made {
    return make(accessor_key(kernel, 0, 3), [=](const Arguments& a, Decoded& d) {
      Normalization work;
      work.kind = kind;
      work.dtype = dtype;
      work.direction = direction;
      work.rows = accessor_size(a, 0, 1, 3);
      work.cols = accessor_size(a, 0, 0, 3) * accessor_size(a, 0, 2, 3);
      d.op.work = work;
    });
  };
  auto one_pass = [&](DType dtype, int reads, int writes) -> Made {
    return make(accessor_key(kernel, 0, 3), [=](const Arguments& a, Decoded& d) {
      Pointwise work;
      work.elements =
          accessor_size(a, 0, 0, 3) * accessor_size(a, 0, 1, 3) * accessor_size(a, 0, 2, 3);
      std::int64_t size = std::max(1, bits(dtype) / 8);
      work.inputs = reads;
      work.outputs = std::max(1, writes);
      work.bytes_read = work.elements * reads * size;
      work.bytes_written = work.elements * writes * size;
      work.dtype = dtype;
      work.flops_per_element = 6;
      work.strided = true;
      d.op.work = work;
    });
  };
  auto reduction = [&](DType dtype, int reads) -> Made {
    return make(accessor_key(kernel, 0, 3), [=](const Arguments& a, Decoded& d) {
      Reduction work;
      work.outputs = accessor_size(a, 0, 1, 3) * 2;
      work.inputs =
          accessor_size(a, 0, 0, 3) * accessor_size(a, 0, 1, 3) * accessor_size(a, 0, 2, 3) * reads;
      work.in = dtype;
      work.out = DType::f32;
      work.kind = ReduceKind::other;
      d.op.work = work;
    });
  };

  if (leaf == "batch_norm_backward_kernel")
    return accessor(NormKind::batch, Direction::backward, template_dtype(name, 0, DType::f32));
  if (leaf == "batch_norm_collect_statistics_kernel")
    return reduction(template_dtype(name, 1, DType::f32), 1);
  if (leaf == "batch_norm_backward_reduce_kernel")
    return reduction(template_dtype(name, 0, DType::f32), 2);
  if (leaf == "batch_norm_backward_elemt_kernel")
    return one_pass(template_dtype(name, 0, DType::f32), 2, 1);
  if (leaf == "batch_norm_transform_input_kernel")
    return one_pass(template_dtype(name, 0, DType::f32), 1, 1);
  if (leaf == "batch_norm_reduce_statistics_kernel")
    return moments(kernel, name, DType::f32, [](const Arguments& a, Reduction& work) {
      work.outputs = static_cast<std::int64_t>(a.grid(0) * a.block(0));
      work.inputs = work.outputs * 8;
    });
  if (last) {
    // The last two ints are reduction size and stride (channels); the elementwise ones put a bool
    // behind.
    std::vector<std::size_t> integers;
    for (std::size_t i = 0; i < name.parameters.size(); ++i)
      if (name.parameters[i] == "int") integers.push_back(i);
    if (integers.size() < 2) return nullptr;
    std::size_t i = integers[integers.size() - 2], j = integers.back();
    auto elements = [i, j](const Arguments& a) { return a.integer(i) * a.integer(j); };
    if (contains(leaf, "collect_statistics") || contains(leaf, "backward_reduce")) {
      bool backward = contains(leaf, "backward");
      DType t = name.parameters.empty() ? DType::f32 : dtype_of(pointee(name.parameters[0]));
      return moments(kernel, name, t, [=](const Arguments& a, Reduction& work) {
        work.outputs = a.integer(j) * 2;
        work.inputs = elements(a) * (backward ? 2 : 1);
        work.inner = false;
      });
    }
    DType t = name.parameters.empty() ? DType::f32 : dtype_of(pointee(name.parameters[0]));
    return pass(kernel, name, t, contains(leaf, "backward") ? 2 : 1, 1, elements, 6);
  }
  return nullptr;
}

}  // namespace

Made prepare_norm(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  DType t = template_dtype(name, 0, DType::f32);

  if (starts_with(leaf, "batch_norm_")) return batch_norm(kernel, name);

  if (leaf == "vectorized_layer_norm_kernel") {
    // <T, T_acc, rms>(int N, eps, X, gamma, beta, mean, rstd, Y): one block per row
    bool rms = template_number(name, 2, 0) != 0;
    return norm(kernel, name, rms ? NormKind::rms : NormKind::layer, t, Direction::forward,
                [](const Arguments& a, Normalization& work) {
                  work.cols = a.integer(0);
                  work.rows = static_cast<std::int64_t>(a.grid(0));
                });
  }
  if (leaf == "layer_norm_grad_input_kernel" || leaf == "layer_norm_grad_input_kernel_vectorized") {
    // <T, T_acc, rms>(dY, X, mean, rstd, gamma, dX, int N): the input's gradient only
    bool rms = template_number(name, 2, 0) != 0;
    std::size_t n = name.parameters.empty() ? 6 : name.parameters.size() - 1;
    return norm(kernel, name, rms ? NormKind::rms : NormKind::layer, t, Direction::backward,
                [n](const Arguments& a, Normalization& work) {
                  work.cols = a.integer(n);
                  work.rows = static_cast<std::int64_t>(a.grid(0));
                });
  }
  if (starts_with(leaf, "GammaBetaBackwardCUDAKernelTemplate") ||
      leaf == "GammaBetaBackwardSimpleCUDAKernel" || leaf == "GammaBetaBackwardCUDAKernel_32x32" ||
      (leaf == "GammaBetaBackwardCUDAKernel" && !name.parameters.empty())) {
    // (int64 M, int64 N, dY, X, mean, rstd, dgamma, dbeta): columns summed over rows
    return norm(kernel, name, NormKind::weight_reduction, t, Direction::backward,
                [](const Arguments& a, Normalization& work) {
                  work.rows = a.integer(0);
                  work.cols = a.integer(1);
                });
  }
  if (leaf == "RowwiseMomentsCUDAKernel" || leaf == "RowwiseMomentsContiguousCUDAKernel") {
    // layer: ([int64 M,] int64 N, eps, X, …) one block per row
    std::size_t n = name.parameters.size() > 1 && name.parameters[1] == "long" ? 1 : 0;
    if (leaf == "RowwiseMomentsContiguousCUDAKernel") t = template_dtype(name, 1, DType::f32);
    return moments(kernel, name, t, [n](const Arguments& a, Reduction& work) {
      work.outputs = static_cast<std::int64_t>(a.grid(0)) * 2;
      work.inputs = static_cast<std::int64_t>(a.grid(0)) * a.integer(n);
    });
  }
  if (starts_with(leaf, "RowwiseMomentsChannelsLast")) {
    // (N, C, HxW, G, eps, X, …)
    if (contains(leaf, "SmallD")) t = template_dtype(name, 1, DType::f32);
    return moments(kernel, name, t, [](const Arguments& a, Reduction& work) {
      work.inputs = a.integer(0) * a.integer(1) * a.integer(2);
      work.outputs = a.integer(0) * a.integer(3) * 2;
      work.inner = false;
    });
  }
  if (leaf == "LayerNormForwardCUDAKernel") {
    return pass(kernel, name, t, 1, 1, [](const Arguments& a) {
      return static_cast<std::int64_t>(a.grid(0)) * a.integer(0);
    });
  }
  if (leaf == "ComputeFusedParamsCUDAKernel" || leaf == "ComputeBackwardFusedParamsCUDAKernel" ||
      leaf == "Compute1dBackwardFusedParamsCUDAKernel") {
    // (N, C, group, …) forward; backward (C, HxW, group, …) or 1d (C, group, …) with the images in
    // the grid
    bool images = contains(leaf, "Backward");
    return pass(kernel, name, t, 2, 2, [images](const Arguments& a) {
      return images ? static_cast<std::int64_t>(a.grid(0)) * a.integer(0)
                    : a.integer(0) * a.integer(1);
    });
  }
  if (starts_with(leaf, "GammaBeta1dBackwardCUDAKernel") ||
      starts_with(leaf, "GammaBetaBackwardCUDAKernel")) {
    // group norm: (N, C, group, …), ds and db of N×C summed over N
    return pass(kernel, name, DType::f32, 2, 0,
                [](const Arguments& a) { return a.integer(0) * a.integer(1); });
  }
  if (leaf == "ComputeInternalGradientsContiguousCUDAKernel") {
    t = template_dtype(name, 1, t);
    return moments(kernel, name, t, [](const Arguments& a, Reduction& work) {
      work.outputs = static_cast<std::int64_t>(a.grid(0)) * 2;
      work.inputs = static_cast<std::int64_t>(a.grid(0)) * a.integer(0) * 2;
    });
  }
  if (starts_with(leaf, "ComputeInternalGradients")) {
    if (t == DType::f32) t = template_dtype(name, 1, t);
    if (name.parameters.size() >= 2 && name.parameters[1] == "long") {
      // Channels last: (C, HxW, …), a block per image and tile of channels; the fallback's tile is
      // one.
      std::int64_t tile = 1;
      if (!contains(leaf, "Fallback") && !name.templates.empty())
        tile = std::max(1, std::atoi(name.templates[0].c_str()));
      return moments(kernel, name, t, [tile](const Arguments& a, Reduction& work) {
        const std::int64_t tiles = std::max<std::int64_t>(1, (a.integer(0) + tile - 1) / tile);
        const std::int64_t images =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(a.geometry().blocks()) / tiles);
        work.inputs = images * a.integer(0) * a.integer(1) * 2;
        work.outputs = images * a.integer(0) * 2;
        work.inner = false;
      });
    }
    return moments(kernel, name, t, [](const Arguments& a, Reduction& work) {
      work.outputs = static_cast<std::int64_t>(a.grid(0)) * 2;
      work.inputs = static_cast<std::int64_t>(a.grid(0)) * a.integer(0) * 2;
    });
  }
  if (leaf == "GroupNormBackwardChannelsLastCUDAKernel") {
    t = template_dtype(name, 1, t);
    return pass(kernel, name, t, 2, 1, [](const Arguments& a) { return a.integer(0); });
  }
  if (starts_with(leaf, "weight_norm_")) {
    bool backward = contains(leaf, "bwd");
    bool first = contains(leaf, "first_dim");
    std::vector<std::size_t> integers;
    for (std::size_t i = 0; i < name.parameters.size(); ++i)
      if (name.parameters[i] == "int") integers.push_back(i);
    return norm(kernel, name, NormKind::l2, t, backward ? Direction::backward : Direction::forward,
                [=](const Arguments& a, Normalization& work) {
                  if (integers.empty()) return;
                  if (first) {
                    work.rows = static_cast<std::int64_t>(a.grid(0));
                    work.cols = a.integer(integers[0]);
                  } else if (integers.size() > 1) {
                    work.rows = a.integer(integers[0]);
                    work.cols = a.integer(integers[1]) / std::max<std::int64_t>(1, work.rows);
                  }
                });
  }
  return nullptr;
}

}  // namespace maya::decode
