#include "decode/experts.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace maya::decode {
namespace {

constinit std::atomic<std::int64_t> router_experts{}, router_top{};

}  // namespace

Router last_router() {
  return {router_experts.load(std::memory_order_relaxed),
          router_top.load(std::memory_order_relaxed)};
}

void note_router(Router router) {
  if (router.experts > 0) router_experts.store(router.experts, std::memory_order_relaxed);
  if (router.top > 0) router_top.store(router.top, std::memory_order_relaxed);
}

std::int64_t experts_behind(const Launch& launch, std::uint64_t address, double bytes_each) {
  if (launch.extent == nullptr || bytes_each <= 0) return 0;
  const auto all =
      static_cast<std::int64_t>(static_cast<double>(launch.extent(address)) / bytes_each);
  // A segment of memory may hold more than one tensor.
  const std::int64_t experts = last_router().experts;
  return experts > 0 ? std::min(all, experts) : all;
}

void deal(Gemm& work, const Dealt& dealt) {
  const Router router = last_router();
  work.experts = std::max<std::int64_t>(1, dealt.local);
  const auto local = static_cast<double>(work.experts);
  // Experts that are divided over ranks: only rows of this rank's are computed.
  const auto all = static_cast<double>(std::max(work.experts, router.experts));
  work.ranks = std::max<std::int64_t>(1, std::llround(all / local));
  work.top = dealt.top > 0 ? dealt.top : std::max<std::int64_t>(1, router.top);
  if (dealt.rows % work.top != 0 || work.top > static_cast<std::int64_t>(all)) work.top = 1;
  work.m = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(dealt.rows) / static_cast<double>(work.ranks)));
  const double tokens = static_cast<double>(dealt.rows) / static_cast<double>(work.top);
  const double each = static_cast<double>(work.top) / all;
  const double expected = local * (1 - std::pow(1 - each, tokens));
  work.dealt = dealt.hit > 0;
  work.groups = std::clamp<std::int64_t>(work.dealt ? dealt.hit : std::llround(expected), 1,
                                         std::min(work.experts, work.m));
}

}  // namespace maya::decode
