// Green contexts: a part of the multiprocessors. The partition is remembered; streams of it are
// ordinary ones.
#include <cstring>

#include "abi/cuda.h"
#include "session/calls.h"
#include "session/handles.h"

using namespace maya;

namespace {

// CUdevResource: type, 92 bytes of internal padding, then the resource itself (SM count first).
struct Resource {
  int type;
  unsigned char internal[92];
  unsigned sms, minimum, alignment, flags;
  unsigned char rest[32];
  void* next;
};

struct Green {
  static constexpr session::HandleKind kind = session::handle_kind("cuda green context");
  int device{};
  unsigned sms{};
};
struct Description {  // lives as long as a green context may be made of it
  static constexpr session::HandleKind kind = session::handle_kind("cuda resource description");
  unsigned sms{};
};

Green* find(const void* context) { return session::find_handle<Green>(context); }

Resource whole() {
  Resource r{};
  r.type = 1;
  r.sms = static_cast<unsigned>(session::gpu().sms);
  r.minimum = session::gpu().capability_major >= 9 ? 8 : 2;
  r.alignment = r.minimum;
  return r;
}

}  // namespace

extern "C" {

int cuDeviceGetDevResource(int, void* resource, int type) {
  if (int error = session::ready()) return error;
  if (resource == nullptr || type != 1) return 1;
  Resource r = whole();
  std::memcpy(resource, &r, 112);
  return 0;
}
int cuDevSmResourceSplitByCount(void* result, unsigned* groups, const void* input, void* remaining,
                                unsigned, unsigned minimum) {
  if (groups == nullptr || input == nullptr) return 1;
  Resource in{};
  std::memcpy(&in, input, 112);
  unsigned unit = std::max(2u, whole().minimum),
           size = (std::max(minimum, unit) + unit - 1) / unit * unit;
  unsigned possible = size > 0 ? in.sms / size : 0;
  unsigned count = *groups == 0 || result == nullptr ? possible : std::min(*groups, possible);
  if (result != nullptr)
    for (unsigned i = 0; i < count; ++i) {
      Resource r = in;
      r.sms = size;
      std::memcpy(static_cast<char*>(result) + i * sizeof(Resource), &r, 112);
    }
  if (remaining != nullptr) {
    Resource r = in;
    r.sms = in.sms - count * size;
    std::memcpy(remaining, &r, 112);
  }
  *groups = count;
  return 0;
}
int cuDevResourceGenerateDesc(void** description, const void* resources, unsigned count) {
  if (description == nullptr || resources == nullptr || count == 0) return 1;
  Resource r{};
  std::memcpy(&r, resources, 112);
  *description = session::make_handle<Description>(r.sms);
  return *description != nullptr ? 0 : 2;
}
int cuGreenCtxCreate(void** context, void* description, int device, unsigned) {
  const auto* own = session::find_handle<Description>(description);
  if (context == nullptr || own == nullptr) return 1;
  if (int error = session::ready()) return error;
  if (device < 0 || device >= session::state().device_count()) return 101;
  *context = session::make_handle<Green>(device, own->sms);
  return *context != nullptr ? 0 : 2;
}
int cuGreenCtxDestroy(void* context) {
  return session::drop_handle<Green>(context) ? 0 : session::code::invalid_context;
}
int cuGreenCtxGetDevResource(void* context, void* resource, int) {
  if (find(context) == nullptr || resource == nullptr) return 1;
  Resource r = whole();
  r.sms = find(context)->sms;
  std::memcpy(resource, &r, 112);
  return 0;
}
int cuGreenCtxStreamCreate(void** stream, void* context, unsigned flags, int priority) {
  if (find(context) == nullptr || stream == nullptr) return 1;
  session::Stream* made = nullptr;
  int error = session::stream_create(made, flags, priority);
  if (error == 0) *stream = made;
  return error;
}
int cuCtxFromGreenCtx(void** context, void* green);
int cuDevicePrimaryCtxRetain(maya::abi::CUcontext* context, int device);
int cuCtxFromGreenCtx(void** context, void* green) {
  if (context == nullptr || find(green) == nullptr) return 1;
  return cuDevicePrimaryCtxRetain(reinterpret_cast<maya::abi::CUcontext*>(context),
                                  find(green)->device);
}

}  // extern "C"
