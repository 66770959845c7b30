// What PyTorch's caching allocator hands out of the memory it took from the device.
//
// Of a job that runs in part, ranks that did not run hold what follows from the order of their work
// and the lifetimes of their tensors (collate/caching_allocator.h). PyTorch reports each tensor's
// memory to its profiler through one function of libc10, across a library boundary; this one stands
// in front of it. With --stacks they tell what fills the memory (report/memory_profile).
#include <dlfcn.h>

#include <atomic>

#include "session/absence.h"
#include "session/places.h"
#include "session/session.h"
#include "session/state.h"

namespace maya::session {
namespace {

// c10::Device: type (CUDA is 1) and index, passed by value in one register.
struct Device {
  std::int8_t type, index;
};
constexpr std::int8_t cuda = 1;

using Report = void(void*, std::int64_t, std::size_t, std::size_t, Device);

// c10::cuda::CUDAStream: two registers.
struct CudaStream {
  std::int64_t device, id;
};
using CurrentStream = CudaStream(signed char);

// A function of PyTorch's libraries, which are not in the global scope: the next one in the order
// of symbols is not it.
template <class Function>
class OfLibrary {
 public:
  constexpr OfLibrary(const char* library, const char* name) : library_(library), name_(name) {}
  Function* get() {
    if (Function* known = function_.load(std::memory_order_relaxed)) return known;
    void* library = dlopen(library_, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    auto* found = reinterpret_cast<Function*>(dlsym(library, name_));
    function_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char *library_, *name_;
  std::atomic<Function*> function_{};
};
constinit OfLibrary<Report> original("libc10.so",
                                     "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
constinit OfLibrary<CurrentStream> current_stream("libc10_cuda.so",
                                                  "_ZN3c104cuda20getCurrentCUDAStreamEa");

// A new tensor has no known contents. Bytes that an earlier tensor left there would be joined with
// those of a neighbour, and be forgotten together with them when a kernel writes into one of both.
void forget_contents(void* address, std::int64_t bytes) {
  State& s = state();
  const auto place = reinterpret_cast<std::uint64_t>(address);
  const auto size = static_cast<std::uint64_t>(bytes);
  if (s.recorder.begun() && s.values.possible_in(place, size)) s.values.forget(place, size);
}

void take_down(void* address, std::int64_t bytes, std::int8_t device) {
  if (bytes > 0) forget_contents(address, bytes);
  if ((ranks_that_run().empty() && !places_wanted) || bytes == 0) return;
  Call call;
  State& s = state();
  if (!s.recorder.begun()) return;
  const auto place = reinterpret_cast<std::uint64_t>(address);
  if (bytes < 0) return s.recorder.tensor_released(place);
  CurrentStream* current = current_stream.get();
  const auto stream =
      current != nullptr ? static_cast<std::uint16_t>(current(device).id) : std::uint16_t{0};
  s.recorder.tensor_allocated(place, static_cast<std::uint64_t>(bytes), stream);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* address, std::int64_t bytes,
                                                      std::size_t allocated, std::size_t reserved,
                                                      Device device) {
  if (device.type == cuda) take_down(address, bytes, device.index);
  if (Report* report = original.get(); report != nullptr)
    report(address, bytes, allocated, reserved, device);
}

}  // namespace maya::session
