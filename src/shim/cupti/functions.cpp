#include "shim/cupti/functions.h"

#include "abi/cupti_activity.h"

using namespace maya::abi;
using maya::trace::Kind;

namespace maya::cupti {

std::uint32_t cbid_of(Kind kind) {
  switch (kind) {
    case Kind::copy:
      return cbid_cudaMemcpyAsync;
    case Kind::fill:
      return cbid_cudaMemsetAsync;
    case Kind::host_function:
      return cbid_cudaLaunchHostFunc;
    case Kind::graph_launch:
      return cbid_cudaGraphLaunch;
    case Kind::event_record:
      return cbid_cudaEventRecord;
    case Kind::stream_wait_event:
      return cbid_cudaStreamWaitEvent;
    case Kind::event_synchronize:
      return cbid_cudaEventSynchronize;
    case Kind::stream_synchronize:
      return cbid_cudaStreamSynchronize;
    case Kind::device_synchronize:
      return cbid_cudaDeviceSynchronize;
    case Kind::allocate:
      return cbid_cudaMalloc;
    case Kind::release:
      return cbid_cudaFree;
    case Kind::launch:
    case Kind::collective:
    case Kind::point_to_point:
      return cbid_cudaLaunchKernel;
    default:
      return 0;
  }
}

std::uint32_t sync_type(Kind kind) {
  switch (kind) {
    case Kind::event_synchronize:
      return 1;
    case Kind::stream_wait_event:
      return 2;
    case Kind::stream_synchronize:
      return 3;
    case Kind::device_synchronize:
      return 4;
    default:
      return 0;
  }
}

const char* runtime_name(std::uint32_t cbid) {
  switch (cbid) {
    case cbid_cudaMalloc:
      return "cudaMalloc_v3020";
    case cbid_cudaFree:
      return "cudaFree_v3020";
    case cbid_cudaMemcpyAsync:
      return "cudaMemcpyAsync_v3020";
    case cbid_cudaMemsetAsync:
      return "cudaMemsetAsync_v3020";
    case cbid_cudaStreamSynchronize:
      return "cudaStreamSynchronize_v3020";
    case cbid_cudaEventRecord:
      return "cudaEventRecord_v3020";
    case cbid_cudaEventSynchronize:
      return "cudaEventSynchronize_v3020";
    case cbid_cudaStreamWaitEvent:
      return "cudaStreamWaitEvent_v3020";
    case cbid_cudaDeviceSynchronize:
      return "cudaDeviceSynchronize_v3020";
    case cbid_cudaLaunchKernel:
      return "cudaLaunchKernel_v7000";
    case cbid_cudaLaunchCooperativeKernel:
      return "cudaLaunchCooperativeKernel_v9000";
    case cbid_cudaLaunchKernelExC:
      return "cudaLaunchKernelExC_v11060";
    case cbid_cudaLaunchHostFunc:
      return "cudaLaunchHostFunc_v10000";
    case cbid_cudaGraphLaunch:
      return "cudaGraphLaunch_v10000";
    default:
      return nullptr;
  }
}

const char* driver_name(std::uint32_t cbid) {
  switch (cbid) {
    case cbid_cuLaunchKernel:
      return "cuLaunchKernel";
    case cbid_cuLaunchCooperativeKernel:
      return "cuLaunchCooperativeKernel";
    case cbid_cuGraphLaunch:
      return "cuGraphLaunch";
    case cbid_cuLaunchKernelEx:
      return "cuLaunchKernelEx";
    default:
      return nullptr;
  }
}

}  // namespace maya::cupti
