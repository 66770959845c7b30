// cuRAND's host interface: numbers nobody reads, of the size that was asked for.
#include "abi/curand.h"
#include "session/handles.h"
#include "shim/common/element.h"

using namespace maya::abi;
using namespace maya;

namespace {

struct Generator {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("curand");
  int type{};
  void* stream{};
  bool host{};
};

Generator* as_generator(curandGenerator_st* handle) {
  return session::find_handle<Generator>(handle);
}

curandStatus generate(curandGenerator_st* handle, const char* name, void* to, std::size_t count,
                      DType type, bool pairs) {
  session::Call call;
  Generator* own = as_generator(handle);
  if (!own) return CURAND_STATUS_NOT_INITIALIZED;
  if (pairs && count % 2 && own->type < CURAND_RNG_QUASI_DEFAULT)
    return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (own->host || count == 0) return CURAND_STATUS_SUCCESS;
  Random work;
  work.elements = static_cast<std::int64_t>(count), work.dtype = type;
  auto bytes = static_cast<std::uint64_t>(shim::bytes_of(type, work.elements));
  return session::submit(own->stream, work, name, {session::writes(to, bytes)})
             ? CURAND_STATUS_LAUNCH_FAILURE
             : CURAND_STATUS_SUCCESS;
}

curandStatus create(curandGenerator_st** handle, int type, bool host) {
  session::Call call;
  if (!handle) return CURAND_STATUS_NOT_INITIALIZED;
  *handle = static_cast<curandGenerator_st*>(
      session::make_handle<Generator>(type, static_cast<void*>(nullptr), host));
  return *handle ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}

curandStatus checked(curandGenerator_st* handle) {
  return as_generator(handle) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

}  // namespace

extern "C" {

curandStatus curandCreateGenerator(curandGenerator_st** handle, curandRngType type) {
  return create(handle, type, false);
}
curandStatus curandCreateGeneratorHost(curandGenerator_st** handle, curandRngType type) {
  return create(handle, type, true);
}
curandStatus curandDestroyGenerator(curandGenerator_st* handle) {
  session::Call call;
  return session::drop_handle<Generator>(handle) ? CURAND_STATUS_SUCCESS
                                                 : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus curandGetVersion(int* version) {
  if (!version) return CURAND_STATUS_OUT_OF_RANGE;
  *version = 10400;
  return CURAND_STATUS_SUCCESS;
}
curandStatus curandSetStream(curandGenerator_st* handle, CUstream_st* stream) {
  if (!as_generator(handle)) return CURAND_STATUS_NOT_INITIALIZED;
  as_generator(handle)->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus curandSetPseudoRandomGeneratorSeed(curandGenerator_st* handle, unsigned long long) {
  return checked(handle);
}
curandStatus curandSetGeneratorOffset(curandGenerator_st* handle, unsigned long long) {
  return checked(handle);
}
curandStatus curandSetGeneratorOrdering(curandGenerator_st* handle, curandOrdering) {
  return checked(handle);
}
curandStatus curandSetQuasiRandomGeneratorDimensions(curandGenerator_st* handle, unsigned) {
  return checked(handle);
}
curandStatus curandGenerateSeeds(curandGenerator_st* handle) { return checked(handle); }

curandStatus curandGenerate(curandGenerator_st* h, unsigned* to, std::size_t n) {
  return generate(h, "curandGenerate", to, n, DType::i32, false);
}
curandStatus curandGenerateLongLong(curandGenerator_st* h, unsigned long long* to, std::size_t n) {
  return generate(h, "curandGenerateLongLong", to, n, DType::i64, false);
}
curandStatus curandGenerateUniform(curandGenerator_st* h, float* to, std::size_t n) {
  return generate(h, "curandGenerateUniform", to, n, DType::f32, false);
}
curandStatus curandGenerateUniformDouble(curandGenerator_st* h, double* to, std::size_t n) {
  return generate(h, "curandGenerateUniformDouble", to, n, DType::f64, false);
}
curandStatus curandGenerateNormal(curandGenerator_st* h, float* to, std::size_t n, float, float) {
  return generate(h, "curandGenerateNormal", to, n, DType::f32, true);
}
curandStatus curandGenerateNormalDouble(curandGenerator_st* h, double* to, std::size_t n, double,
                                        double) {
  return generate(h, "curandGenerateNormalDouble", to, n, DType::f64, true);
}
curandStatus curandGenerateLogNormal(curandGenerator_st* h, float* to, std::size_t n, float,
                                     float) {
  return generate(h, "curandGenerateLogNormal", to, n, DType::f32, true);
}
curandStatus curandGenerateLogNormalDouble(curandGenerator_st* h, double* to, std::size_t n, double,
                                           double) {
  return generate(h, "curandGenerateLogNormalDouble", to, n, DType::f64, true);
}
curandStatus curandGeneratePoisson(curandGenerator_st* h, unsigned* to, std::size_t n, double) {
  return generate(h, "curandGeneratePoisson", to, n, DType::i32, false);
}

}  // extern "C"
