#include "session/execution.h"

#include <algorithm>
#include <cstring>

#include "session/calls.h"

namespace maya::session {
namespace {

std::uint64_t pinned_from(std::uint64_t address) {
  std::uint64_t base = 0, bytes = 0;
  if (!pinned_range(reinterpret_cast<const void*>(address), base, bytes)) return 0;
  return base + bytes - address;
}

// The host reads zeros where a value is not known, as it does in copies from the device.
void write_host(std::uint64_t address, const std::byte* from, std::uint64_t bytes) {
  bytes = std::min(bytes, pinned_from(address));
  if (from != nullptr)
    std::memcpy(reinterpret_cast<void*>(address), from, bytes);
  else
    std::memset(reinterpret_cast<void*>(address), 0, bytes);
}

// A launch that is repeated mostly finds the values that it wrote before.
bool holds(std::uint64_t address, const std::byte* data, std::uint64_t bytes) {
  const void* there = state().values.known(address, bytes);
  return there != nullptr && std::memcmp(there, data, bytes) == 0;
}

void forget_if_known(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  if (s.values.possible_in(address, bytes)) s.values.forget(address, bytes);
}

}  // namespace

std::uint64_t reachable(std::uint64_t address) {
  State& s = state();
  return s.memory.owns(address) ? s.memory.extent(address) : pinned_from(address);
}

const void* known_at(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  if (s.memory.owns(address)) return s.values.known(address, bytes);
  return pinned_from(address) >= bytes && bytes > 0 ? reinterpret_cast<const void*>(address)
                                                    : nullptr;
}

bool possible_at(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  // Pinned memory may begin anywhere in a range of the host, and all of it is known.
  return !s.memory.owns(address) || s.values.possible_in(address, bytes);
}

bool meets_host_memory(const Function& function, void* const* arguments) {
  if (function.kernel.ptx.empty() && function.kernel.image.empty()) return false;
  const auto& sizes = function.code.parameter_sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 8) continue;
    std::uint64_t word;
    std::memcpy(&word, arguments[i], 8);
    if (word > 0xffff && !state().memory.owns(word) && pinned_from(word) > 0) return true;
  }
  return false;
}

void forget_behind_tables(const Function& function, void* const* arguments) {
  if (function.kernel.ptx.empty() && function.kernel.image.empty()) return;
  State& s = state();
  const auto& sizes = function.code.parameter_sizes;
  constexpr std::uint64_t most = 512;  // pointers in a table
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 8) continue;
    std::uint64_t table = 0;
    std::memcpy(&table, arguments[i], 8);
    for (std::uint64_t at = 0; at < most && s.memory.owns(table); ++at) {
      const void* word = s.values.known(table + 8 * at, 8);
      if (word == nullptr) break;
      std::uint64_t address = 0;
      std::memcpy(&address, word, 8);
      if (!s.memory.owns(address)) break;
      s.values.forget_from(address);
    }
  }
}

bool run_on_values(const Function& function, const decode::Launch& launch) {
  const auto* executable = dynamic_cast<const decode::Executable*>(function.decoder.get());
  if (executable == nullptr) return false;
  decode::Effects space;
  const decode::Effects* written = executable->execute(launch, space);
  if (written == nullptr) return false;
  const decode::Effects& effects = *written;
  State& s = state();
  if (effects.assumed)
    s.recorder.warning("numbers that nobody computed steered " + function.kernel.demangled +
                       " (taken to be above zero and to differ from what they are compared with)");
  for (std::uint64_t address : effects.behind) s.values.forget_from(address);
  for (const auto& range : effects.ranges) {
    const std::byte* from = range.known ? effects.data.data() + range.data : nullptr;
    if (!s.memory.owns(range.address))
      write_host(range.address, from, range.bytes);
    else if (from == nullptr || range.bytes > s.settings.value_limit)
      forget_if_known(range.address, range.bytes);
    else if (!holds(range.address, from, range.bytes))
      s.values.store(range.address, from, range.bytes);
  }
  return true;
}

}  // namespace maya::session
