#include "session/session.h"

#include <mutex>
#include <vector>

#include "session/calls.h"
#include "session/framework.h"
#include "session/observation.h"
#include "session/timing.h"

namespace maya::session {

int submit(void* stream_handle, const Work& work, const char* name,
           std::initializer_list<Touch> touched) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  State& s = state();
  s.memory.load_libraries(stream->device);
  for (const auto& t : touched) {
    if (!t.write) continue;
    auto address = reinterpret_cast<std::uint64_t>(t.address);
    if (t.bytes == 0)
      s.values.forget_from(address);
    else if (s.values.possible(address) || t.bytes > values::KnownBytes::grain)
      s.values.forget(address, t.bytes);
  }
  std::uint32_t op = s.recorder.op(work, name);
  return enqueue(*stream, trace::Kind::launch, op);
}

const catalog::Gpu& gpu() { return state().settings.cluster.gpu; }

int device_count() { return state().device_count(); }

int current_device() { return thread().device; }

int check_device(int device) {
  if (int error = ready()) return error;
  return device < 0 || device >= device_count() ? code::invalid_device : code::success;
}

void use_device(int device) { thread().device = device; }

void remember_error(int code) { thread().last_error = code; }

int last_error(bool forget) {
  Thread& t = thread();
  const int error = t.last_error;
  if (forget) t.last_error = code::success;
  return error;
}

bool context_exists() { return state().recorder.begun(); }

namespace {
thread_local std::uint32_t called_function = 0;
thread_local CalledAs::Api called_api{};
}  // namespace

CalledAs::CalledAs(Api api, std::uint32_t function) : outermost_(called_function == 0) {
  if (outermost_) called_function = function, called_api = api;
}
CalledAs::~CalledAs() {
  if (outermost_) called_function = 0;
}
std::uint32_t CalledAs::function(Api& api) {
  api = called_api;
  return called_function;
}

Op observed_op(std::uint32_t number) { return state().recorder.op_of(number); }

double modelled_ns(const Work& work, const char* name) { return timing().ns(Op{work, name, {}}); }

double modelled_op_ns(std::uint32_t op) { return timing().ns(op); }

void note_version(const char* library, std::string_view version) {
  state().recorder.version(library, std::string(version));
  // Whoever makes library handles has loaded the framework by then.
  static std::once_flag once;
  std::call_once(once, [] {
    if (const std::string torch = torch_version(); !torch.empty())
      state().recorder.version("torch", torch);
  });
}

void warn(const char* what) { state().recorder.warning(what); }

namespace {
int& range_depth() {
  static thread_local int depth = 0;
  return depth;
}
}  // namespace

int range_push(const char* name) {
  State& s = state();
  if (s.recorder.begun())
    s.recorder.record(trace::Kind::range_push, 0, s.recorder.text(name ? name : ""));
  return range_depth()++;
}

int range_pop() {
  State& s = state();
  if (range_depth() == 0) return -1;
  if (s.recorder.begun()) s.recorder.record(trace::Kind::range_pop, 0, 0);
  return --range_depth();
}

void mark(const char* name) {
  State& s = state();
  if (s.recorder.begun())
    s.recorder.record(trace::Kind::mark, 0, s.recorder.text(name ? name : ""));
}

}  // namespace maya::session

extern "C" long maya_unimplemented(const char* library, const char* function, unsigned* seen) {
  if (seen != nullptr) ++*seen;
  maya::session::state().recorder.unimplemented(library, function);
  return 0;
}
