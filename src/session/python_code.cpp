#include "session/python_code.h"

#include <dlfcn.h>

#include <cstdio>

namespace maya::session {
namespace {

template <class F>
F* find(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void run_python(const std::string& source, const char* purpose) {
  using Object = void*;
  auto* import = find<Object(const char*)>("PyImport_ImportModule");
  auto* attribute = find<Object(Object, const char*)>("PyObject_GetAttrString");
  auto* call = find<Object(Object, const char*, ...)>("PyObject_CallFunction");
  auto* dictionary = find<Object()>("PyDict_New");
  auto* put = find<int(Object, const char*, Object)>("PyDict_SetItemString");
  auto* print = find<void()>("PyErr_Print");
  if (!import || !attribute || !call || !dictionary || !put || !print) return;
  Object builtins = import("builtins");
  Object compile = builtins ? attribute(builtins, "compile") : nullptr;
  Object execute = builtins ? attribute(builtins, "exec") : nullptr;
  Object code = compile ? call(compile, "sss", source.c_str(), "<maya>", "exec") : nullptr;
  Object names = code ? dictionary() : nullptr;
  if (names) put(names, "__builtins__", builtins);
  if (names && execute && call(execute, "OO", code, names)) return;
  std::fprintf(stderr, "maya: %s:\n", purpose);
  print();
}

bool has_python() {
  auto* initialized = find<int()>("Py_IsInitialized");
  return initialized != nullptr && initialized() != 0;
}

PythonLock::PythonLock() {
  auto* ensure = find<int()>("PyGILState_Ensure");
  if (ensure == nullptr || !has_python()) return;
  state_ = ensure();
  held_ = true;
}

PythonLock::~PythonLock() {
  if (auto* release = held_ ? find<void(int)>("PyGILState_Release") : nullptr) release(state_);
}

}  // namespace maya::session
