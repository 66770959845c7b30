#include "decode/repeats.h"

#include <algorithm>
#include <cstring>

namespace maya::decode {
namespace {

class Hash {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const std::uint8_t*>(data);
    for (; bytes >= 8; at += 8, bytes -= 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      mix(word);
    }
    for (; bytes > 0; ++at, --bytes) mix(*at);
  }
  void mix(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15ULL;
    value_ ^= value_ >> 32;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x2545f4914f6cdd1dULL;
};

// Which bytes are known, and their values. Loads are of one byte at least, so that each byte
// counts.
void add_known(Hash& hash, const Launch& launch, std::uint64_t from, std::uint64_t bytes) {
  if (launch.possible != nullptr && !launch.possible(from, bytes)) {
    hash.mix(bytes << 1);
  } else if (const void* all = launch.known(from, bytes)) {
    hash.mix(1);
    hash.add(all, bytes);
  } else if (bytes == 1) {
    hash.mix(0);
  } else {
    const std::uint64_t half = bytes / 2;
    add_known(hash, launch, from, half);
    add_known(hash, launch, from + half, bytes - half);
  }
}

// Lines side by side, mostly of one tensor, are looked up together.
std::uint64_t hash_of_reads(const Launch& launch, const Effects& effects) {
  constexpr std::size_t together = 1024;
  Hash hash;
  const auto& lines = effects.lines_read;
  for (std::size_t first = 0, last = 0; first < lines.size(); first = last) {
    last = first + 1;
    while (last < lines.size() && last - first < together && lines[last] == lines[last - 1] + 1)
      ++last;
    add_known(hash, launch, lines[first] * Effects::line_bytes,
              (last - first) * Effects::line_bytes);
  }
  return hash.value();
}

bool still_unknown(const Launch& launch, const Effects& effects) {
  constexpr std::uint64_t bytes = Effects::area_bytes;
  return std::none_of(effects.unknown_areas.begin(), effects.unknown_areas.end(),
                      [&](std::uint64_t area) {
                        return launch.possible == nullptr || launch.possible(area * bytes, bytes);
                      });
}

// Memory may have been freed since.
bool still_there(const Launch& launch, const Effects& effects) {
  return std::all_of(effects.ranges.begin(), effects.ranges.end(),
                     [&](const Effects::Range& r) { return launch.extent(r.address) >= r.bytes; });
}

}  // namespace

std::uint64_t hash_of_launch(const Launch& launch) {
  Hash hash;
  hash.add(&launch.geometry.grid, sizeof launch.geometry.grid);
  hash.add(&launch.geometry.block, sizeof launch.geometry.block);
  hash.mix(launch.geometry.shared_bytes);
  const auto& sizes = launch.kernel->parameter_sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (launch.arguments[i] != nullptr) hash.add(launch.arguments[i], sizes[i]);
  return hash.value() | 1;
}

const Effects* Repeats::find(const Launch& launch) const {
  if (kept_.empty()) return nullptr;
  const std::uint64_t wanted = hash_of_launch(launch);
  for (const Kept& kept : kept_)
    if (kept.launch == wanted && still_unknown(launch, kept.effects) &&
        hash_of_reads(launch, kept.effects) == kept.read && still_there(launch, kept.effects))
      return &kept.effects;
  return nullptr;
}

void Repeats::keep(const Launch& launch, const Effects& effects) {
  if (effects.steps < worthwhile || !effects.repeatable || effects.lines_read.size() > most_reads)
    return;
  Kept kept{hash_of_launch(launch), hash_of_reads(launch, effects), effects};
  auto same = std::find_if(kept_.begin(), kept_.end(),
                           [&](const Kept& other) { return other.launch == kept.launch; });
  if (same != kept_.end()) {
    *same = std::move(kept);
  } else if (kept_.size() < most) {
    kept_.push_back(std::move(kept));
  } else {
    kept_[next_] = std::move(kept);
    next_ = (next_ + 1) % most;
  }
}

}  // namespace maya::decode
