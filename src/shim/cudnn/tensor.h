// Descriptors of the legacy interface: plain data behind cuDNN's opaque pointers.
#pragma once

#include <array>
#include <cstdint>
#include <new>

#include "shim/cudnn/handle.h"

namespace maya::shim::cudnn {

inline constexpr int kMaxDims = 8;

struct Tensor {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn Tensor");
  int type{};
  int rank{};
  std::array<std::int64_t, kMaxDims> dims{}, strides{};

  std::int64_t elements() const {
    std::int64_t product = rank ? 1 : 0;
    for (int i = 0; i < rank; ++i) product *= dims[static_cast<std::size_t>(i)];
    return product;
  }
  // Elements from the first to the last in memory.
  std::int64_t span() const {
    std::int64_t last = rank ? 1 : 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
      if (dims[i] == 0) return 0;
      last += (dims[i] - 1) * strides[i];
    }
    return last;
  }
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(bytes_of(dtype_of(type), span()));
  }
  bool channels_last() const { return rank > 2 && dims[1] > 1 && strides[1] == 1; }
};

struct Filter {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn Filter");
  int type{};
  int format{};
  int rank{};
  std::array<std::int64_t, kMaxDims> dims{};
  std::int64_t elements() const {
    std::int64_t product = rank ? 1 : 0;
    for (int i = 0; i < rank; ++i) product *= dims[static_cast<std::size_t>(i)];
    return product;
  }
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(bytes_of(dtype_of(type), elements()));
  }
};

struct ConvolutionShape {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn ConvolutionShape");
  int rank{};  // spatial
  std::array<int, kMaxDims> padding{}, stride{}, dilation{};
  int mode{}, compute_type{}, math_type{}, groups{1}, reorder{};
};

struct Pooling {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn Pooling");
  int mode{}, nan{}, rank{};
  std::array<int, kMaxDims> window{}, padding{}, stride{};
};

struct Activation {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn Activation");
  int mode{}, nan{};
  double coefficient{}, swish_beta{1};
};

struct Dropout {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn Dropout");
  float probability{};
  void* states{};
  std::size_t state_bytes{};
  unsigned long long seed{};
};

struct CtcLoss {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn CtcLoss");
  int compute_type{}, normalization{}, gradient_mode{}, max_label{};
};

struct SpatialTransformer {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn SpatialTransformer");
  int sampler{}, type{}, rank{};
  std::array<std::int64_t, kMaxDims> dims{};
};

struct OpTensor {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn OpTensor");
  int op{}, type{}, nan{};
};

struct ReduceTensor {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn ReduceTensor");
  int op{}, type{}, nan{}, indices{}, index_type{};
};

// What a descriptor of cuDNN's stands for; nullptr for what is no living descriptor of that kind.
template <class Own>
Own* as(const void* descriptor) {
  return session::find_handle<Own>(descriptor);
}

template <class Own, class T>
cudnnStatus_t create(T** descriptor) {
  if (!descriptor) return fail(CUDNN_STATUS_BAD_PARAM, "descriptor pointer is null");
  *descriptor = static_cast<T*>(session::make_handle<Own>());
  return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

template <class Own>
cudnnStatus_t destroy(const void* descriptor) {
  if (!descriptor) return CUDNN_STATUS_SUCCESS;
  return session::drop_handle<Own>(descriptor)
             ? CUDNN_STATUS_SUCCESS
             : fail(CUDNN_STATUS_BAD_PARAM, "not a living descriptor of this kind");
}

}  // namespace maya::shim::cudnn
