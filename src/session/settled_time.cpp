#include "session/settled_time.h"

#include <algorithm>

namespace maya::session {

std::int64_t SettledTime::settle(clock::HostTimes& times, std::uint64_t what, std::int64_t ns) {
  before_[next_++ % calls] = what;
  const bool slept = slept_;
  slept_ = false;
  return settle_at(times, slept ? 2 : 0, ns);
}

std::int64_t SettledTime::settle_before_sleep(clock::HostTimes& times, std::int64_t ns) {
  slept_ = true;
  return settle_at(times, 1, ns);
}

std::int64_t SettledTime::settle_at(clock::HostTimes& times, std::uint64_t stretch,
                                    std::int64_t ns) const {
  if (ns <= 0 || ns > UINT32_MAX) return ns;
  std::uint64_t key = stretch;
  for (std::size_t i = 0; i < calls; ++i) {
    key = (key ^ before_[(next_ + i) % calls]) * 0xff51afd7ed558ccdULL;
    key ^= key >> 32;
  }
  const std::int64_t usual = times.add(key, static_cast<std::uint32_t>(ns));
  if (ns > long_ns && usual < ns / 2) return ns;
  return std::min(usual, ns);
}

}  // namespace maya::session
