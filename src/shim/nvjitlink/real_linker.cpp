#include "shim/nvjitlink/real_linker.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace maya::nvjitlink {
namespace {

using namespace abi;

// Both majors are preloaded, and a program may be answered by either: the compiler's own counts.
constexpr const char* files[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};

// The compiler that made the LTO IR is loaded; the linker of the same installation is near it: in
// the same folder, in a toolkit's lib64 (nvvm/lib64/../..) or in the package next to it.
int remember_compiler(dl_phdr_info* info, std::size_t, void* to) {
  std::string_view name = info->dlpi_name ? info->dlpi_name : "";
  auto slash = name.rfind('/');
  if (slash == std::string_view::npos || name.find("libnvvm.so", slash) == std::string_view::npos)
    return 0;
  *static_cast<std::string*>(to) = name.substr(0, slash + 1);
  return 1;
}

std::vector<std::string> folders() {
  std::vector<std::string> found;
  std::string compiler;
  dl_iterate_phdr(remember_compiler, &compiler);
  if (!compiler.empty())
    for (const char* near : {"", "../../lib64/", "../../lib/", "../../../nvjitlink/lib/"})
      found.push_back(compiler + near);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) found.push_back(std::string(home) + "/lib64/");
  found.emplace_back("/usr/local/cuda/lib64/");
  return found;
}

void* library() {
  static void* const handle = []() -> void* {
    for (const auto& folder : folders())  // dlopen would be answered with the emulated one
      for (const char* file : files)
        if (void* found = dlmopen(LM_ID_BASE, (folder + file).c_str(), RTLD_NOW | RTLD_LOCAL))
          return found;
    return nullptr;
  }();
  return handle;
}

template <class... A>
nvJitLinkResult call(const char* name, A... arguments) {
  auto* function = reinterpret_cast<nvJitLinkResult (*)(A...)>(dlsym(library(), name));
  return function ? function(arguments...) : NVJITLINK_ERROR_INTERNAL;
}

std::string text(nvJitLinkHandle handle, const char* size_of, const char* get) {
  std::size_t size = 0;
  if (call(size_of, handle, &size) != NVJITLINK_SUCCESS || size == 0) return {};
  std::string result(size, 0);
  if (call(get, handle, result.data()) != NVJITLINK_SUCCESS) return {};
  while (!result.empty() && result.back() == 0) result.pop_back();
  return result;
}

Linked link_as(bool ptx, const std::vector<std::string>& options,
               const std::vector<Input>& inputs) {
  std::vector<const char*> words;
  for (const auto& option : options)
    if (option != "-ptx" && option != "-lto") words.push_back(option.c_str());
  words.push_back("-lto");
  if (ptx) words.push_back("-ptx");
  nvJitLinkHandle handle = nullptr;
  Linked linked;
  linked.result =
      call("nvJitLinkCreate", &handle, static_cast<std::uint32_t>(words.size()), words.data());
  if (linked.result != NVJITLINK_SUCCESS || !handle) return linked;
  for (const auto& input : inputs) {
    // What the emulated NVRTC calls LTO IR lists kernels and has no code.
    if (input.type == NVJITLINK_INPUT_LTOIR && !is_lto_ir(input.data)) continue;
    if (linked.result != NVJITLINK_SUCCESS) break;
    linked.result =
        call("nvJitLinkAddData", handle, input.type, static_cast<const void*>(input.data.data()),
             input.data.size(), input.name.c_str());
  }
  if (linked.result == NVJITLINK_SUCCESS) linked.result = call("nvJitLinkComplete", handle);
  if (linked.result == NVJITLINK_SUCCESS) {
    if (ptx) {
      linked.image = text(handle, "nvJitLinkGetLinkedPtxSize", "nvJitLinkGetLinkedPtx");
    } else {
      std::size_t size = 0;
      call("nvJitLinkGetLinkedCubinSize", handle, &size);
      linked.image.resize(size);
      call("nvJitLinkGetLinkedCubin", handle, static_cast<void*>(linked.image.data()));
    }
    if (linked.image.empty()) linked.result = NVJITLINK_ERROR_INTERNAL;
  } else {
    linked.log = text(handle, "nvJitLinkGetErrorLogSize", "nvJitLinkGetErrorLog");
  }
  call("nvJitLinkDestroy", &handle);
  return linked;
}

}  // namespace

bool is_lto_ir(const std::string& data) {
  return data.size() > 4 && std::memcmp(data.data(), "\xed\x43\x4e\x7f", 4) == 0;
}

Linked link(const std::vector<std::string>& options, const std::vector<Input>& inputs) {
  if (!library())
    return {NVJITLINK_ERROR_NVVM_COMPILE,
            {},
            "maya: LTO IR is linked by NVIDIA's libnvJitLink, which was not found beside libnvvm, "
            "in CUDA_HOME or in /usr/local/cuda: install "
            "the package nvidia-nvjitlink, or compile without -lto"};
  Linked linked = link_as(true, options, inputs);
  return linked.result == NVJITLINK_SUCCESS ? linked : link_as(false, options, inputs);
}

}  // namespace maya::nvjitlink
