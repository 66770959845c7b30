#include "session/settled_time.h"

#include <algorithm>

namespace maya::session {

std::int64_t SettledTime::settle(std::uint64_t what, std::int64_t ns) {
  before_[next_++ % calls] = what;
  if (ns <= 0 || ns > longest_ns) return ns;
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < calls; ++i) {
    key = (key ^ before_[(next_ + i) % calls]) * 0xff51afd7ed558ccdULL;
    key ^= key >> 32;
  }
  Place& place = places_[key];
  place.ns[place.count++ % times] = ns;
  const auto end = place.ns.begin() + std::min<std::ptrdiff_t>(place.count, times);
  return *std::min_element(place.ns.begin(), end);
}

}  // namespace maya::session
