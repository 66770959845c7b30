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
    auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    function_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* name_;
  mutable std::atomic<Function*> function_{};
};

}  // namespace maya::session
