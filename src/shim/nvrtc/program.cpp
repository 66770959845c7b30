// NVRTC: programs are accepted and "compiled" to a list of their kernels with their parameters.
#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "abi/nvrtc.h"
#include "session/handles.h"
#include "session/host_memory.h"
#include "shim/nvrtc/source.h"

using namespace maya::abi;
using namespace maya::shim::nvrtc;
namespace session = maya::session;

namespace {

struct Program {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("nvrtc");
  std::string source;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  std::string text;
  bool compiled{};
};

Program* as_program(nvrtcProgram program) { return session::find_handle<Program>(program); }

std::string target_of(int count, const char* const* options) {
  for (int i = 0; i < count; ++i) {
    std::string option = options[i] ? options[i] : "";
    auto at = option.find("sm_");
    if (at == std::string::npos) at = option.find("compute_");
    if (at == std::string::npos) continue;
    auto digits = option.find_first_of("0123456789", at);
    if (digits != std::string::npos) return "sm_" + option.substr(digits);
  }
  return "sm_52";  // the documented default
}

nvrtcResult size_of(nvrtcProgram program, std::size_t* size) {
  Program* own = as_program(program);
  if (!own) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!size) return NVRTC_ERROR_INVALID_INPUT;
  *size = own->compiled ? own->text.size() + 1 : 0;
  return NVRTC_SUCCESS;
}

nvrtcResult text_of(nvrtcProgram program, char* to) {
  Program* own = as_program(program);
  if (!own) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!to || !own->compiled) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(to, own->text.c_str(), own->text.size() + 1);
  return NVRTC_SUCCESS;
}

constexpr int kArchitectures[] = {50, 52, 53, 60, 61, 62,  70,  72, 75,
                                  80, 86, 87, 89, 90, 100, 103, 120};

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE:
      return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case NVRTC_ERROR_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
      return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default:
      return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
#if MAYA_CUDA_MAJOR >= 13
  *major = 13, *minor = 2;
#else
  *major = 12, *minor = 9;
#endif
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return NVRTC_ERROR_INVALID_INPUT;
  *count = static_cast<int>(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  if (!architectures) return NVRTC_ERROR_INVALID_INPUT;
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), architectures);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
  session::Call call;
  if (!program || !source) return NVRTC_ERROR_INVALID_INPUT;
  *program = static_cast<nvrtcProgram>(session::make_handle<Program>());
  if (!*program) return NVRTC_ERROR_OUT_OF_MEMORY;
  as_program(*program)->source = source;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  session::Call call;
  if (!program || !session::drop_handle<Program>(*program)) return NVRTC_ERROR_INVALID_PROGRAM;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  session::Call call;
  Program* own = as_program(program);
  if (!own || !expression) return NVRTC_ERROR_INVALID_INPUT;
  if (own->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  own->expressions.push_back(expression);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  session::Call call;
  Program* own = as_program(program);
  if (!own) return NVRTC_ERROR_INVALID_PROGRAM;
  if (count < 0 || !session::mapped_texts(options, static_cast<std::size_t>(count)))
    return NVRTC_ERROR_INVALID_INPUT;
  std::vector<Kernel> found = kernels(own->source);
  auto called = [&](const std::string& name) {
    return std::find_if(found.begin(), found.end(),
                        [&](const Kernel& k) { return k.name == name; });
  };
  for (const std::string& expression : own->expressions) {
    const std::string name = symbol(expression);
    own->lowered[expression] = name;
    if (called(name) != found.end()) continue;
    Kernel instance{name, {}, {}};
    if (auto of = called(function_of(expression)); of != found.end())
      instance.parameters = of->parameters;
    found.push_back(std::move(instance));
  }
  own->text = ptx(found, target_of(count, options));
  own->compiled = true;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** name) {
  Program* own = as_program(program);
  if (!own || !expression || !name) return NVRTC_ERROR_INVALID_INPUT;
  if (!own->compiled) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  auto found = own->lowered.find(expression);
  if (found == own->lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *name = found->second.c_str();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* size) {
  return size_of(program, size);
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* to) { return text_of(program, to); }
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size) {
  return size_of(program, size);
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* to) { return text_of(program, to); }
nvrtcResult nvrtcGetLTOIRSize(nvrtcProgram program, std::size_t* size) {
  return size_of(program, size);
}
nvrtcResult nvrtcGetLTOIR(nvrtcProgram program, char* to) { return text_of(program, to); }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* size) {
  if (!as_program(program)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!size) return NVRTC_ERROR_INVALID_INPUT;
  *size = 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* to) {
  if (!as_program(program)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!to) return NVRTC_ERROR_INVALID_INPUT;
  *to = 0;
  return NVRTC_SUCCESS;
}

}  // extern "C"
