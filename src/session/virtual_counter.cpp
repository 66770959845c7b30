#include "session/virtual_counter.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "session/counter_reads.h"
#include "session/host_clock.h"
#include "session/live_device.h"
#include "session/state.h"
#include "session/virtual_time.h"

namespace maya::session {
namespace {

// The counter at the job's time 0, and how fast it goes: as this machine's, so that whoever knows
// its frequency is right.
std::uint64_t first_tick = 0, ticks_per_ns_q32 = 0;
std::once_flag rate_known;
std::atomic<bool> all_replaced{false};

void know_rate() {
  std::call_once(rate_known, [] {
    ticks_per_ns_q32 = static_cast<std::uint64_t>(4294967296.0 / time_domain->ns_per_tick());
    const auto now = static_cast<unsigned __int128>(thread_now());
    first_tick = HostClock::ticks() - static_cast<std::uint64_t>((now * ticks_per_ns_q32) >> 32);
  });
}

struct Code {
  std::string library;
  std::span<std::uint8_t> bytes;
};

template <class Wanted>
std::vector<Code> code_of_libraries(Wanted&& wanted) {
  struct Search {
    Wanted& wanted;
    std::vector<Code> found;
  } search{wanted, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const std::string_view name = path.substr(path.rfind('/') + 1);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          auto* begin = reinterpret_cast<std::uint8_t*>(info->dlpi_addr + segment.p_vaddr);
          if (search.wanted(name, begin, segment.p_memsz))
            search.found.push_back({std::string(name), {begin, segment.p_filesz}});
        }
        return 0;
      },
      &search);
  return std::move(search.found);
}

bool replace_in(const std::vector<Code>& codes) {
  know_rate();
  bool all = true;
  for (const Code& code : codes) {
    const CounterReads reads = find_counter_reads(code.bytes);
    const bool replaced = replace_counter_reads(code.bytes, reads.sites);
    all &= replaced && reads.unknown == 0;
    if (!replaced || reads.unknown != 0)
      state().recorder.warning(
          code.library + " reads the time-stamp counter in " +
          std::to_string(reads.unknown + (replaced ? 0 : reads.sites.size())) +
          " places that virtual time could not take over: its stamps of CPU ops are not the "
          "cluster's");
  }
  return all;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) std::uint64_t maya_counter_read() {
  const int error = errno;
  // PyTorch's allocator reads the counter at every call, and nobody looks. What a profiler was told
  // must not be taken back (virtual_time.h).
  const bool counts = device_is_observed() && in_virtual_time();
  const std::int64_t time = counts ? thread_reads() : thread_now();
  errno = error;
  return first_tick + static_cast<std::uint64_t>(
                          (static_cast<unsigned __int128>(time) * ticks_per_ns_q32) >> 32);
}

void counter_follows_time() {
  static std::once_flag once;
  if (time_domain == nullptr) return;
  Call call;
  std::call_once(once, [] {
    const auto codes = code_of_libraries([](std::string_view name, const void*, std::size_t) {
      return name.starts_with("libtorch") || name.starts_with("libc10") ||
             name.starts_with("libkineto");
    });
    all_replaced = !codes.empty() && replace_in(codes);
  });
}

bool counter_is_virtual() { return all_replaced; }

void counter_follows_time_in(const void* code) {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_relaxed)) return;
  Dl_info info{};
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return;
  const std::string_view path = info.dli_fname;
  if (!path.substr(path.rfind('/') + 1).starts_with("libzmq") || done.exchange(true)) return;
  Call call;
  replace_in(code_of_libraries([&](std::string_view, const std::uint8_t* begin, std::size_t size) {
    const auto* at = static_cast<const std::uint8_t*>(code);
    return at >= begin && at < begin + size;
  }));
}

}  // namespace maya::session
