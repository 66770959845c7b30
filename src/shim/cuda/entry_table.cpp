// The table is generated from spec/driver_versions.csv, sorted by name, newest form first. Symbols
// are declared without their parameters: only addresses are taken here.
#include "shim/cuda/entry_table.h"

#include <algorithm>
#include <iterator>

extern "C" {
#define MAYA_DRIVER_ENTRY(function, since, symbol, per_thread) \
  void symbol();                                               \
  void per_thread();
#include "shim/driver_entry_points.inc"
#undef MAYA_DRIVER_ENTRY
}

namespace maya::shim::cuda {
namespace {

struct Form {
  std::string_view function;
  int since;
  void (*plain)();
  void (*per_thread)();
};

const Form kForms[] = {
#define MAYA_DRIVER_ENTRY(function, since, symbol, per_thread) \
  {#function, since, symbol, per_thread},
#include "shim/driver_entry_points.inc"
#undef MAYA_DRIVER_ENTRY
};

}  // namespace

Entry find_entry(std::string_view function, int cuda_version, bool per_thread) {
  auto form = std::lower_bound(
      std::begin(kForms), std::end(kForms), function,
      [](const Form& left, std::string_view right) { return left.function < right; });
  Entry entry;
  for (; form != std::end(kForms) && form->function == function; ++form) {
    entry.known = true;
    if (form->since <= cuda_version) {
      entry.address = reinterpret_cast<void*>(per_thread ? form->per_thread : form->plain);
      break;
    }
  }
  return entry;
}

}  // namespace maya::shim::cuda
