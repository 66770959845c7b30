// The function behind a wrapper that stands in front of it.
#pragma once

#include <dlfcn.h>

#include <atomic>

// In front of a function of the C library, which the program then calls instead.
#define MAYA_WRAPPER extern "C" __attribute__((visibility("default")))

namespace maya::session {

// Usable before any constructor has run: other libraries' may call a wrapper before ours are done.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* get() const {
    if (Function* known = function_.load(std::memory_order_relaxed)) return known;
    void* found = dlsym(RTLD_NEXT, name_);
    if (found == nullptr) found = elsewhere();
    function_.store(reinterpret_cast<Function*>(found), std::memory_order_relaxed);
    return reinterpret_cast<Function*>(found);
  }

 private:
  // Without LD_PRELOAD (`import torch` with our folder in LD_LIBRARY_PATH) this library is behind
  // the C library, and nothing is next.
  void* elsewhere() const {
    void* found = dlsym(RTLD_DEFAULT, name_);
    Dl_info its{}, own{};
    const bool known = found != nullptr && dladdr(found, &its) != 0 && dladdr(name_, &own) != 0;
    return known && its.dli_fbase != own.dli_fbase ? found : nullptr;
  }

  const char* name_;
  mutable std::atomic<Function*> function_{};
};

}  // namespace maya::session
