#include "session/parallel_work.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>

#include "clock/system_call.h"

namespace maya::session {
namespace {

std::atomic<std::uint64_t> callers_ns{0};  // CPU time of calling threads, as far as it was said
std::atomic<std::uint64_t> claimed_ns{0};  // CPU time of helpers that was looked at

Team find_team() {
  Team found;
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const long threads = std::strtol(text, nullptr, 10);  // the first of a list of levels
    if (threads > 0) return {static_cast<std::uint16_t>(std::min(threads, 4096L)), true};
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    found.threads = static_cast<std::uint16_t>(std::max(1, CPU_COUNT(&allowed)));
  return found;
}

// A child has used no CPU time yet.
[[gnu::constructor]] void forget_in_children() {
  pthread_atfork(nullptr, nullptr, [] { callers_ns = claimed_ns = 0; });
}

}  // namespace

Team team() {
  static const Team known = find_team();
  return known;
}

void add_caller_time(std::uint64_t ns) { callers_ns.fetch_add(ns, std::memory_order_relaxed); }

std::uint64_t together(std::uint64_t worked, std::uint64_t helpers, std::uint16_t threads) {
  if (threads < 2) return 0;
  const std::uint64_t each = helpers / (threads - 1u);
  // A pool that is busy for a small part of the time is somebody else's: a logger, a prefetcher.
  return each >= worked / 2 ? std::min(each, worked) : 0;
}

std::uint64_t claim_parallel_work(std::uint64_t worked) {
  if (team().threads < 2) return 0;
  const auto process = static_cast<std::uint64_t>(clock::real_ns(CLOCK_PROCESS_CPUTIME_ID));
  const std::uint64_t callers = callers_ns.load(std::memory_order_relaxed);
  const std::uint64_t all = process - std::min(process, callers);
  const std::uint64_t before = claimed_ns.exchange(all, std::memory_order_relaxed);
  return together(worked, all - std::min(all, before), team().threads);
}

}  // namespace maya::session
