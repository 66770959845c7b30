// nvJitLink: inputs are kept; the linked program is the last text that lists kernels (PTX, or what
// our NVRTC calls LTO IR). Real LTO IR is linked by the real linker.
//
// Every CUDA release has its own symbols (__nvJitLinkCreate_12_4, …), all with the same meaning.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "abi/nvrtc.h"
#include "session/handles.h"
#include "session/host_memory.h"
#include "session/kernels.h"
#include "shim/nvjitlink/real_linker.h"

using namespace maya::abi;
namespace session = maya::session;

namespace {

struct Link {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("nvjitlink");
  std::string image, log;
  bool complete{};
  std::vector<std::string> options;
  std::vector<maya::nvjitlink::Input> inputs;
};
Link* as_link(nvJitLinkHandle handle) { return session::find_handle<Link>(handle); }

nvJitLinkResult create(nvJitLinkHandle* handle, unsigned count, const char* const* options) {
  session::Call call;
  if (!handle || !session::mapped_texts(options, count)) return NVJITLINK_ERROR_INVALID_INPUT;
  bool arch = false;
  for (unsigned i = 0; i < count; ++i)
    arch |= options[i] && std::strncmp(options[i], "-arch=", 6) == 0;
  if (!arch) return NVJITLINK_ERROR_MISSING_ARCH;
  *handle = static_cast<nvJitLinkHandle>(session::make_handle<Link>());
  Link* own = as_link(*handle);
  if (!own) return NVJITLINK_ERROR_INTERNAL;
  for (unsigned i = 0; i < count; ++i)
    if (options[i]) own->options.emplace_back(options[i]);
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult destroy(nvJitLinkHandle* handle) {
  session::Call call;
  if (!handle || !session::drop_handle<Link>(*handle)) return NVJITLINK_ERROR_INVALID_INPUT;
  *handle = nullptr;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult add_data(nvJitLinkHandle handle, nvJitLinkInputType type, const void* data,
                         std::size_t size, const char* name) {
  session::Call call;
  if (!as_link(handle) || !data || !session::mapped(data, size))
    return NVJITLINK_ERROR_INVALID_INPUT;
  std::string text(static_cast<const char*>(data), size);
  // Cubins cannot be merged here; the first input with kernels is the program, further PTX joins
  // it.
  Link* own = as_link(handle);
  own->inputs.push_back({type, text, name ? name : ""});
  if (own->image.empty() || text.find(".entry") != std::string::npos) {
    while (!text.empty() && text.back() == 0) text.pop_back();
    own->image += text;
  }
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult add_file(nvJitLinkHandle handle, nvJitLinkInputType type, const char* path) {
  if (!as_link(handle) || !path) return NVJITLINK_ERROR_INVALID_INPUT;
  std::string text;
  if (!session::read_code_file(path, text)) return NVJITLINK_ERROR_INVALID_INPUT;
  return add_data(handle, type, text.data(), text.size(), path);
}
nvJitLinkResult complete(nvJitLinkHandle handle) {
  if (!as_link(handle)) return NVJITLINK_ERROR_INVALID_INPUT;
  Link* own = as_link(handle);
  bool lto = std::any_of(own->inputs.begin(), own->inputs.end(),
                         [](const auto& i) { return maya::nvjitlink::is_lto_ir(i.data); });
  if (lto) {
    session::Call call;
    auto linked = maya::nvjitlink::link(own->options, own->inputs);
    own->log = linked.log;
    if (linked.result != NVJITLINK_SUCCESS) return linked.result;
    own->image = linked.image;
  }
  own->complete = true;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult image_size(nvJitLinkHandle handle, std::size_t* size) {
  if (!as_link(handle) || !size || !as_link(handle)->complete) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = as_link(handle)->image.size() + 1;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult image(nvJitLinkHandle handle, void* to) {
  if (!as_link(handle) || !to || !as_link(handle)->complete) return NVJITLINK_ERROR_INVALID_INPUT;
  std::memcpy(to, as_link(handle)->image.c_str(), as_link(handle)->image.size() + 1);
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult log_size(nvJitLinkHandle handle, std::size_t* size) {
  if (!as_link(handle) || !size) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = as_link(handle)->log.size() + 1;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult log(nvJitLinkHandle handle, char* to) {
  if (!as_link(handle) || !to) return NVJITLINK_ERROR_INVALID_INPUT;
  std::memcpy(to, as_link(handle)->log.c_str(), as_link(handle)->log.size() + 1);
  return NVJITLINK_SUCCESS;
}

}  // namespace

extern "C" {

nvJitLinkResult nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (!major || !minor) return NVJITLINK_ERROR_INVALID_INPUT;
#if MAYA_CUDA_MAJOR >= 13
  *major = 13, *minor = 2;
#else
  *major = 12, *minor = 9;
#endif
  return NVJITLINK_SUCCESS;
}

#define MAYA_LINK(PREFIX, V)                                                                      \
  nvJitLinkResult PREFIX##Create##V(nvJitLinkHandle* h, unsigned n, const char* const* o) {       \
    return create(h, n, o);                                                                       \
  }                                                                                               \
  nvJitLinkResult PREFIX##Destroy##V(nvJitLinkHandle* h) { return destroy(h); }                   \
  nvJitLinkResult PREFIX##AddData##V(nvJitLinkHandle h, nvJitLinkInputType t, const void* d,      \
                                     std::size_t n, const char* s) {                              \
    return add_data(h, t, d, n, s);                                                               \
  }                                                                                               \
  nvJitLinkResult PREFIX##AddFile##V(nvJitLinkHandle h, nvJitLinkInputType t, const char* p) {    \
    return add_file(h, t, p);                                                                     \
  }                                                                                               \
  nvJitLinkResult PREFIX##Complete##V(nvJitLinkHandle h) { return complete(h); }                  \
  nvJitLinkResult PREFIX##GetLinkedCubinSize##V(nvJitLinkHandle h, std::size_t* n) {              \
    return image_size(h, n);                                                                      \
  }                                                                                               \
  nvJitLinkResult PREFIX##GetLinkedCubin##V(nvJitLinkHandle h, void* to) { return image(h, to); } \
  nvJitLinkResult PREFIX##GetLinkedPtxSize##V(nvJitLinkHandle h, std::size_t* n) {                \
    return image_size(h, n);                                                                      \
  }                                                                                               \
  nvJitLinkResult PREFIX##GetLinkedPtx##V(nvJitLinkHandle h, char* to) { return image(h, to); }   \
  nvJitLinkResult PREFIX##GetErrorLogSize##V(nvJitLinkHandle h, std::size_t* n) {                 \
    return log_size(h, n);                                                                        \
  }                                                                                               \
  nvJitLinkResult PREFIX##GetErrorLog##V(nvJitLinkHandle h, char* to) { return log(h, to); }      \
  nvJitLinkResult PREFIX##GetInfoLogSize##V(nvJitLinkHandle h, std::size_t* n) {                  \
    return log_size(h, n);                                                                        \
  }                                                                                               \
  nvJitLinkResult PREFIX##GetInfoLog##V(nvJitLinkHandle h, char* to) { return log(h, to); }

MAYA_LINK(nvJitLink, )
#if MAYA_CUDA_MAJOR >= 13
MAYA_LINK(__nvJitLink, _13_0)
#else
MAYA_LINK(__nvJitLink, _12_0)
MAYA_LINK(__nvJitLink, _12_1)
MAYA_LINK(__nvJitLink, _12_2)
MAYA_LINK(__nvJitLink, _12_3)
MAYA_LINK(__nvJitLink, _12_4)
MAYA_LINK(__nvJitLink, _12_5)
MAYA_LINK(__nvJitLink, _12_6)
MAYA_LINK(__nvJitLink, _12_7)
MAYA_LINK(__nvJitLink, _12_8)
#endif

}  // extern "C"
