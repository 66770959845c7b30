// A CUDA program with its own kernels, streams, events, a graph and a cooperative reduction: no PyTorch in sight.
// Build: nvcc -cudart shared -o heat heat.cu
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                              \
  do {                                                                                           \
    cudaError_t code = (call);                                                                   \
    if (code != cudaSuccess) {                                                                   \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(code));         \
      std::exit(1);                                                                              \
    }                                                                                            \
  } while (0)

__global__ void diffuse(const float* from, float* to, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  to[i] = 0.25f * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width]);
}

__global__ void largest(const float* data, int n, float* out) {
  extern __shared__ float part[];
  float best = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) best = fmaxf(best, data[i]);
  part[threadIdx.x] = best;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}

int main() {
  const int width = 1024, height = 1024;
  const size_t bytes = size_t(width) * height * sizeof(float);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%d x %s, %d SMs\n", devices, properties.name, properties.multiProcessorCount);

  std::vector<float> host(size_t(width) * height, 1.0f);
  float *a, *b, *result;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&result, sizeof(float)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyAsync(a, host.data(), bytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemsetAsync(b, 0, bytes, stream));

  int occupancy = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&occupancy, diffuse, 256, 0));
  if (occupancy < 1) return std::fprintf(stderr, "no block of 256 threads fits\n"), 1;

  dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 10; ++i) {
    diffuse<<<grid, block, 0, stream>>>(a, b, width, height);
    diffuse<<<grid, block, 0, stream>>>(b, a, width, height);
  }
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));

  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < 20; ++i) CHECK(cudaGraphLaunch(executable, stream));
  largest<<<1, 256, 256 * sizeof(float), stream>>>(a, width * height, result);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = 0, value = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(cudaMemcpy(&value, result, sizeof value, cudaMemcpyDeviceToHost));
  std::printf("20 x 20 sweeps in %.3f ms\n", milliseconds);
  if (milliseconds <= 0) return std::fprintf(stderr, "the emulated time did not pass\n"), 1;

  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(result));
  std::printf("done\n");
  return 0;
}
