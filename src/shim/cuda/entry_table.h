// Which symbol a program gets that asks the driver for a function by name and CUDA version.
#pragma once

#include <string_view>

namespace maya::shim::cuda {

struct Entry {
  void* address = nullptr;
  bool known = false;  // the name exists, perhaps only in newer versions
};

// `per_thread` asks for the form whose default stream is the calling thread's; functions without
// one give the plain form.
Entry find_entry(std::string_view function, int cuda_version, bool per_thread);

}  // namespace maya::shim::cuda
