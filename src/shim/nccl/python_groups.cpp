#include "shim/nccl/python_groups.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <utility>

namespace maya::nccl {
namespace {

// The few functions of Python's stable ABI that are needed, if this is a Python process.
struct Python {
  using Object = void*;
  int (*initialized)() = find<int()>("Py_IsInitialized");
  int (*ensure)() = find<int()>("PyGILState_Ensure");
  void (*release)(int) = find<void(int)>("PyGILState_Release");
  Object (*builtin)(const char*) = find<Object(const char*)>("PySys_GetObject");  // borrowed
  Object (*call)(Object, Object) = find<Object(Object, Object)>("PyObject_CallObject");
  Object (*call_with)(Object, ...) = find<Object(Object, ...)>("PyObject_CallFunctionObjArgs");
  Object (*attribute)(Object,
                      const char*) = find<Object(Object, const char*)>("PyObject_GetAttrString");
  Object (*item)(Object,
                 const char*) = find<Object(Object, const char*)>("PyMapping_GetItemString");
  Object (*values)(Object) = find<Object(Object)>("PyMapping_Values");
  Object (*keys)(Object) = find<Object(Object)>("PyMapping_Keys");
  std::ptrdiff_t (*size)(Object) = find<std::ptrdiff_t(Object)>("PySequence_Size");
  Object (*element)(Object,
                    std::ptrdiff_t) = find<Object(Object, std::ptrdiff_t)>("PySequence_GetItem");
  long (*number)(Object) = find<long(Object)>("PyLong_AsLong");
  const char* (*text)(Object, std::ptrdiff_t*) =
      find<const char*(Object, std::ptrdiff_t*)>("PyUnicode_AsUTF8AndSize");
  Object (*error)() = find<Object()>("PyErr_Occurred");  // borrowed
  void (*clear)() = find<void()>("PyErr_Clear");
  void (*drop)(Object) = find<void(Object)>("Py_DecRef");

  bool usable() const {
    return initialized && ensure && release && builtin && call && call_with && attribute && item &&
           values && keys && size && element && number && text && error && clear && drop &&
           initialized() != 0;
  }

 private:
  template <class F>
  static F* find(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  }
};

const Python& python() {
  static const Python* it = new Python;
  return *it;
}

// Owns a reference; whatever failed is null, and no error is left behind.
class Ref {
 public:
  explicit Ref(void* object) : object_(object) {
    if (object_ == nullptr) python().clear();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) python().drop(object_);
  }
  explicit operator bool() const { return object_ != nullptr; }
  void* get() const { return object_; }
  Ref attribute(const char* name) const {
    return Ref(object_ ? python().attribute(object_, name) : nullptr);
  }
  Ref item(const char* name) const { return Ref(object_ ? python().item(object_, name) : nullptr); }
  Ref element(std::ptrdiff_t i) const {
    return Ref(object_ ? python().element(object_, i) : nullptr);
  }
  // Of a list, tuple or range; -1 for anything else.
  std::ptrdiff_t size() const {
    const std::ptrdiff_t n = object_ ? python().size(object_) : -1;
    if (n < 0) python().clear();
    return n;
  }
  std::string text() const {
    const char* it = object_ ? python().text(object_, nullptr) : nullptr;
    if (it == nullptr) python().clear();
    return it != nullptr ? it : "";
  }
  bool number(int& out) const {
    const long value = python().number(object_);
    if (value == -1 && python().error() != nullptr) return python().clear(), false;
    out = static_cast<int>(value);
    return value >= 0 && value < 1 << 24;
  }

 private:
  void* object_;
};

class Lock {
 public:
  Lock() : state_(python().ensure()) {}
  ~Lock() { python().release(state_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int state_;
};

bool has(const std::vector<int>& ranks, int member, int place) {
  return place < static_cast<int>(ranks.size()) && ranks[static_cast<std::size_t>(place)] == member;
}

// Different numbers, or empty.
std::vector<int> numbers(const Ref& list) {
  std::vector<int> found;
  const std::ptrdiff_t size = list.size();
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    int value = 0;
    const Ref element = list.element(i);
    if (!element || !element.number(value)) return {};
    found.push_back(value);
  }
  auto sorted = found;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return {};
  return found;
}

// A list of ranks, or one of several lists.
std::vector<int> fitting(const Ref& value, int member, int place) {
  auto direct = numbers(value);
  if (has(direct, member, place)) return direct;
  const std::ptrdiff_t size = direct.empty() ? value.size() : 0;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const Ref inner = value.element(i);
    if (!inner || inner.attribute("upper")) break;  // a text is a sequence too
    auto ranks = numbers(inner);
    if (has(ranks, member, place)) return ranks;
    if (ranks.empty()) break;
  }
  return {};
}

// Places of a group by rank of the job, as torch keeps them → the ranks in order of their places.
std::vector<int> in_order(const Ref& map, int size) {
  const Ref keys(map ? python().keys(map.get()) : nullptr);
  const Ref places(map ? python().values(map.get()) : nullptr);
  if (keys.size() != size || places.size() != size) return {};
  const auto ranks = numbers(keys), at = numbers(places);
  std::vector<int> members(ranks.size(), -1);
  for (std::size_t k = 0; k < at.size() && k < ranks.size(); ++k)
    if (at[k] < size) members[static_cast<std::size_t>(at[k])] = ranks[k];
  return members;
}

// The list of the group that a call of torch.distributed under way was given.
std::vector<int> group_of_call(const Ref& groups, int size) {
  void* get_frame = python().builtin("_getframe");
  Ref frame(get_frame != nullptr ? python().call(get_frame, nullptr) : nullptr);
  const Ref look_up = groups ? groups.attribute("get") : Ref(nullptr);
  constexpr int most_frames = 40;
  for (int depth = 0; frame && look_up && depth < most_frames; ++depth) {
    if (frame.attribute("f_globals").item("__name__").text().rfind("torch.distributed", 0) == 0) {
      const Ref locals = frame.attribute("f_locals");
      const Ref group = locals.item("group");
      const Ref map(group ? python().call_with(look_up.get(), group.get(), nullptr) : nullptr);
      if (auto members = in_order(map, size); !members.empty()) return members;
    }
    frame = frame.attribute("f_back");
  }
  return {};
}

// sys.modules[name], without importing anything.
Ref module(const char* name) {
  void* modules = python().builtin("modules");
  return Ref(modules != nullptr ? python().item(modules, name) : nullptr);
}

}  // namespace

std::vector<int> group_being_made(int member, int place) {
  if (!python().usable()) return {};
  Lock lock;
  void* get_frame = python().builtin("_getframe");
  Ref frame(get_frame != nullptr ? python().call(get_frame, nullptr) : nullptr);
  constexpr int most_frames = 40;
  for (int depth = 0; frame && depth < most_frames; ++depth) {
    if (frame.attribute("f_globals").item("__name__").text().rfind("torch.distributed", 0) == 0) {
      const Ref locals = frame.attribute("f_locals");
      for (const char* name :
           {"global_ranks_in_group", "ranks", "group_ranks", "my_group", "split_ranks"}) {
        const Ref value = locals.item(name);
        if (!value) continue;
        if (auto ranks = fitting(value, member, place); !ranks.empty()) return ranks;
      }
    }
    frame = frame.attribute("f_back");
  }
  return {};
}

std::vector<int> group_of(int size, int member, int place) {
  if (!python().usable()) return {};
  Lock lock;
  const Ref torch = module("torch.distributed.distributed_c10d");
  Ref groups = torch.attribute("_pg_group_ranks");
  if (!groups) groups = torch.attribute("_world").attribute("pg_group_ranks");
  // Communicators are made by the first collective of a group, and its call names the group.
  if (auto named = group_of_call(groups, size); has(named, member, place)) return named;
  const Ref lists(groups ? python().values(groups.get()) : nullptr);
  std::vector<int> only;
  for (std::ptrdiff_t i = 0, count = lists.size(); i < count; ++i) {
    const Ref map = lists.element(i);  // rank of the job → rank of the group
    const auto members = in_order(map, size);
    if (!has(members, member, place)) continue;
    if (!only.empty() && only != members) return {};
    only = members;
  }
  return only;
}

}  // namespace maya::nccl
