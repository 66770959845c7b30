#include "shim/cudnn/convolution.h"

namespace maya::shim::cudnn {

std::optional<Convolution> convolution(const Tensor& x, std::span<const std::int64_t> w,
                                       const Steps& steps, DType type, bool tf32,
                                       Direction direction) {
  auto spatial = steps.stride.size();
  if (spatial < 1 || spatial > 3 || x.rank != static_cast<int>(spatial) + 2 ||
      w.size() != spatial + 2)
    return {};
  if (w[1] <= 0 || x.dims[1] % w[1] != 0) return {};
  Convolution work;
  work.n = x.dims[0], work.c = x.dims[1], work.k = w[0];
  work.groups = static_cast<std::int32_t>(x.dims[1] / w[1]);
  if (work.groups < 1 || work.k % work.groups != 0) return {};
  std::int64_t* size[] = {&work.d, &work.h, &work.w};
  std::int32_t* kernel[] = {&work.kd, &work.kh, &work.kw};
  std::int32_t* stride[] = {&work.stride_d, &work.stride_h, &work.stride_w};
  std::int32_t* pad[] = {&work.pad_d, &work.pad_h, &work.pad_w};
  std::int32_t* dilation[] = {&work.dilation_d, &work.dilation_h, &work.dilation_w};
  for (std::size_t i = 0; i < spatial; ++i) {
    std::size_t at = 3 - spatial + i;
    *size[at] = x.dims[i + 2];
    *kernel[at] = static_cast<std::int32_t>(w[i + 2]);
    *stride[at] = static_cast<std::int32_t>(steps.stride[i]);
    *pad[at] = static_cast<std::int32_t>(steps.padding[i]);
    *dilation[at] = static_cast<std::int32_t>(steps.dilation[i]);
  }
  work.dtype = type;
  work.compute = rate_class(type, tf32);
  work.layout = x.channels_last() ? Layout::channels_last : Layout::channels_first;
  work.direction = direction;
  return work;
}

std::size_t workspace(const Convolution& work) {
  bool tensor_cores =
      work.compute == DType::f16 || work.compute == DType::bf16 || work.compute == DType::tf32;
  if (!tensor_cores || capability() < 70 || work.layout == Layout::channels_last ||
      work.groups == work.c)
    return 0;
  std::int64_t in = work.n * work.c * work.d * work.h * work.w;
  std::int64_t out = work.n * work.k * work.out_d() * work.out_h() * work.out_w();
  std::int64_t filter = work.k * (work.c / work.groups) * work.kd * work.kh * work.kw;
  return static_cast<std::size_t>(bytes_of(work.dtype, in + out + filter));
}

}  // namespace maya::shim::cudnn
