// Kernels as the program brings them: registered by its start-up code or loaded as modules,
// unpacked when first used.
#include "base/files.h"
#include "device/sass.h"
#include "session/calls.h"
#include "session/host_memory.h"
#include "session/notes.h"

namespace maya::session {
namespace {

struct Registration {
  Module* module{};
  const char* name{};
  Function* function{};
};
struct Variable {
  Module* module{};
  const char* name{};
  std::uint64_t bytes{};
};
// Filled with tens of thousands of entries while torch is imported: cheap and lazy.
std::unordered_map<const void*, Registration>& registrations() {
  static auto* map = new std::unordered_map<const void*, Registration>(1 << 15);
  return *map;
}
std::unordered_map<const void*, Variable>& registered_variables() {
  static auto* map = new std::unordered_map<const void*, Variable>;
  return *map;
}
std::mutex& registration_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

Module* find_module(void* handle) { return modules().find(handle); }

int capability() {
  const auto& gpu = state().settings.cluster.gpu;
  return gpu.capability_major * 10 + gpu.capability_minor;
}

int unpack_module(Module& module) {
  if (!module.unpacked) {
    const void* data = mapped(module.data, 4) ? module.data : nullptr;
    if (data != nullptr) data = device::unwrap(data, mapped_from(data, 64));
    auto set = device::unpack(data, capability(), mapped_from(data, device::any_room));
    module.fault = set.fault;
    for (auto& image : set.images) {
      for (auto& [name, code] : device::kernels(image))
        module.kernels.emplace(name, std::move(code));
      for (auto& [name, bytes] : device::variables(image)) module.variables.emplace(name, bytes);
      if (image.is_ptx) module.ptx.push_back(std::move(image));
    }
    module.unpacked = true;
  }
  if (module.fault == device::ImageFault::no_kernel_image) return code::no_kernel_image;
  if (module.fault == device::ImageFault::invalid) return code::invalid_image;
  return code::success;
}

// Where the module's code does not tell the size of the variable, the program has: `hint`.
int variable_of(Module& module, const char* name, std::uint64_t hint, std::uint64_t& address,
                std::uint64_t& bytes) {
  if (int error = touch()) return error;
  State& s = state();
  std::lock_guard guard(s.mutex);
  if (int error = unpack_module(module)) return error;
  auto variable = module.variables.find(name);
  bytes = variable != module.variables.end() ? variable->second : hint;
  if (bytes == 0) return code::not_found;
  auto [it, inserted] = module.addresses.emplace(name, 0);
  if (inserted) {
    auto allocation = s.memory.allocate(thread().device, bytes, MemoryKind::device);
    if (!allocation) return module.addresses.erase(it), code::out_of_memory;
    it->second = allocation->address;
  }
  address = it->second;
  return code::success;
}

}  // namespace

device::Slab<Module, 1 << 18>& modules() {
  static auto* slab = new device::Slab<Module, 1 << 18>;
  return *slab;
}

void* register_binary(const void* wrapper, int cuda_major) {
  uses_runtime(cuda_major, wrapper);
  Module* module = modules().create();
  if (module != nullptr) module->data = wrapper;
  return module;
}

void register_function(void* module, const void* host, const char* name) {
  std::lock_guard guard(registration_mutex());
  registrations()[host] = {static_cast<Module*>(module), name, nullptr};
}

void register_variable(void* module, const void* host, const char* name, std::uint64_t bytes) {
  std::lock_guard guard(registration_mutex());
  registered_variables()[host] = {static_cast<Module*>(module), name, bytes};
}

Function* function_of_stub(const void* host) {
  // A program may also pass a Function it got from cudaGetKernel or cuKernel…
  static std::atomic<Function*> recent[1024];
  auto word = reinterpret_cast<std::uintptr_t>(host);
  auto& mine = recent[(word >> 4 ^ word >> 14) % std::size(recent)];
  if (Function* found = mine.load(std::memory_order_acquire);
      found != nullptr && found->host == host)
    return found;
  std::lock_guard guard(registration_mutex());
  auto it = registrations().find(host);
  if (it == registrations().end()) return state().functions.find(host);
  if (it->second.function == nullptr) {
    Function* function = nullptr;
    if (it->second.module == nullptr) return nullptr;
    function = state().functions.create();
    if (function == nullptr) return nullptr;
    function->module = it->second.module;
    function->name = it->second.name;
    function->host = host;
    it->second.function = function;
  }
  mine.store(it->second.function, std::memory_order_release);
  return it->second.function;
}

void* registered_function(const void* host) { return function_of_stub(host); }

int registered_variable(const void* host, std::uint64_t& address, std::uint64_t& bytes) {
  Variable variable;
  {
    std::lock_guard guard(registration_mutex());
    auto it = registered_variables().find(host);
    if (it == registered_variables().end()) return code::invalid_symbol;
    variable = it->second;
  }
  return variable_of(*variable.module, variable.name, variable.bytes, address, bytes);
}

int module_load(void*& handle, const void* data) {
  if (int error = touch()) return error;
  if (data == nullptr) return code::invalid_value;
  if (!mapped(data, 4)) return code::invalid_value;
  // A wrapper is what compiled code registers; the fat binary is where it points.
  data = device::unwrap(data, mapped_from(data, 64));
  std::size_t bytes = device::image_bytes(data, mapped_from(data, device::any_room));
  if (bytes == 0) return code::invalid_image;
  Module* module = modules().create();
  if (module == nullptr) return code::out_of_memory;
  // Unpack now: the program may free its copy, and a wrong architecture is reported here.
  module->data = data;
  int error = unpack_module(*module);
  module->data = nullptr;
  // A cubin by itself is Triton's: its bytes lead to the PTX kept beside it.
  const char* image = static_cast<const char*>(data);
  if (error == 0 && image[0] == 0x7f && image[1] == 'E') module->copy.assign(image, image + bytes);
  if (error != 0) return modules().destroy(module), error;
  handle = module;
  return code::success;
}

bool read_code_file(const char* path, std::string& bytes) {
  constexpr std::size_t most = std::size_t{2} << 30;
  auto text = base::read_file(path, most);
  if (text) bytes = std::move(*text);
  return static_cast<bool>(text);
}

int module_load_file(void*& module, const char* path) {
  std::string bytes;
  if (!read_code_file(path, bytes)) return code::file_not_found;
  // Of a file the size is known: one that was cut off must not be read on in the memory behind it.
  if (device::image_bytes(bytes.c_str(), bytes.size() + 1) == 0) return code::invalid_image;
  return module_load(module, bytes.c_str());
}

int module_unload(void* handle) {
  State& s = state();
  Module* module = find_module(handle);
  if (module == nullptr) return code::invalid_handle;
  for (auto& [name, function] : module->functions) s.functions.destroy(function);
  for (auto& [name, address] : module->addresses) s.memory.release(address);
  modules().destroy(module);
  return code::success;
}

bool valid_module(void* handle) { return find_module(handle) != nullptr; }

int module_kernel_count(void* handle, unsigned& count) {
  const Module* module = find_module(handle);
  if (module == nullptr) return code::invalid_handle;
  count = static_cast<unsigned>(module->kernels.size());
  return code::success;
}

int module_function(void* handle, const char* name, void*& function) {
  if (find_module(handle) == nullptr) return code::invalid_handle;
  Module& module = *find_module(handle);
  State& s = state();
  std::lock_guard guard(s.mutex);
  if (int error = unpack_module(module)) return error;
  if (name == nullptr) return code::invalid_value;
  auto [it, inserted] = module.functions.emplace(name, nullptr);
  if (inserted) {
    if (module.kernels.find(name) == module.kernels.end()) {
      module.functions.erase(it);
      return code::not_found;
    }
    it->second = s.functions.create();
    it->second->module = &module;
    it->second->name = name;
  }
  function = it->second;
  return code::success;
}

int module_variable(void* handle, const char* name, std::uint64_t& address, std::uint64_t& bytes) {
  Module* module = find_module(handle);
  if (module == nullptr) return code::invalid_handle;
  return name == nullptr ? code::invalid_value : variable_of(*module, name, 0, address, bytes);
}

bool valid_function(void* handle) { return find_function(handle) != nullptr; }

const char* function_name(void* handle) {
  const Function* function = find_function(handle);
  return function != nullptr ? function->name.c_str() : nullptr;
}

void* function_module(void* handle) {
  const Function* function = find_function(handle);
  return function != nullptr ? function->module : nullptr;
}

int function_parameter(void* handle, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  Function* function = find_function(handle);
  if (function == nullptr) return code::invalid_handle;
  if (int error = resolve(*function)) return error;
  if (index >= function->code.parameter_offsets.size()) return code::invalid_value;
  if (offset != nullptr) *offset = function->code.parameter_offsets[index];
  if (bytes != nullptr) *bytes = function->code.parameter_sizes[index];
  return code::success;
}

int resolve(Function& function) {
  if (function.resolved.load(std::memory_order_acquire)) [[likely]]
    return function.fault;
  State& s = state();
  std::lock_guard guard(s.mutex);
  if (function.resolved) return function.fault;
  function.fault = unpack_module(*function.module);
  if (function.fault == 0) {
    auto it = function.module->kernels.find(function.name);
    if (it == function.module->kernels.end()) {
      function.fault =
          code::no_kernel_image;  // the container has no code of this kernel for this GPU
    } else {
      function.code = it->second;
      auto& k = function.kernel;
      k.mangled = function.name;
      k.parameter_offsets = function.code.parameter_offsets;
      k.parameter_sizes = function.code.parameter_sizes;
      k.registers = function.code.registers;
      k.static_shared = function.code.static_shared;
      k.capability = capability();
      for (const auto& image : function.module->ptx)
        if (image.ptx().find(function.name) != std::string_view::npos) k.ptx = image.ptx();
      const auto& loaded = function.module->copy;
      if (k.ptx.empty() && loaded.size() > 4 && loaded[0] == 0x7f && loaded[1] == 'E')
        k.image = std::string_view(loaded.data(), loaded.size());
      if (!k.image.empty() && function.code.local_bytes > 0) {
        const device::MemoryCode memory = device::memory_code(device::code_of(k.image, k.mangled));
        k.stack = function.code.local_bytes;
        if (memory.global_bytes > 0)
          k.local_per_global =
              static_cast<double>(memory.local_bytes) / static_cast<double>(memory.global_bytes);
      }
      function.decoder = decode::prepare(k);
      function.touches_values = function.decoder->touches_values();
      function.touches_values_up_to = function.decoder->touches_values_up_to();
    }
  }
  function.resolved.store(true, std::memory_order_release);
  return function.fault;
}

}  // namespace maya::session
