#include "shim/cuda/context_storage.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "session/session.h"

extern "C" int cuCtxGetCurrent(maya::abi::CUcontext* context);

namespace maya::shim::cuda {
namespace {

struct Kept {
  void* value;
  StorageEnds ends;
};

std::mutex mutex;
std::map<std::pair<abi::CUcontext, void*>, Kept>& storage() {
  static auto* kept = new std::map<std::pair<abi::CUcontext, void*>, Kept>;  // until the very end
  return *kept;
}

int resolve(abi::CUcontext& context) {
  if (context != nullptr) return 0;
  if (const int error = cuCtxGetCurrent(&context)) return error;
  return context == nullptr ? session::code::invalid_context : 0;
}

}  // namespace

int put_in_context(abi::CUcontext context, void* key, void* value, StorageEnds ends) {
  if (const int error = resolve(context)) return error;
  std::lock_guard guard(mutex);
  storage()[{context, key}] = {value, ends};
  return 0;
}

int remove_from_context(abi::CUcontext context, void* key) {
  if (const int error = resolve(context)) return error;
  std::lock_guard guard(mutex);
  return storage().erase({context, key}) > 0 ? 0 : session::code::invalid_handle;
}

int get_from_context(void** value, abi::CUcontext context, void* key) {
  if (value == nullptr) return session::code::invalid_value;
  if (const int error = resolve(context)) return error;
  std::lock_guard guard(mutex);
  const auto found = storage().find({context, key});
  if (found == storage().end()) return session::code::invalid_handle;
  *value = found->second.value;
  return 0;
}

void empty_context(abi::CUcontext context) {
  std::vector<std::pair<void*, Kept>> ended;
  {
    std::lock_guard guard(mutex);
    auto& all = storage();
    for (auto at = all.lower_bound({context, nullptr});
         at != all.end() && at->first.first == context; at = all.erase(at))
      ended.emplace_back(at->first.second, at->second);
  }
  for (const auto& [key, kept] : ended)
    if (kept.ends != nullptr) kept.ends(context, key, kept.value);
}

}  // namespace maya::shim::cuda
