#include "decode/ptx_memory.h"

#include <algorithm>
#include <cstring>

namespace maya::decode::ptx {

// Kernels that pick elements out of a large unknown tensor would fill the list of lines.
bool GlobalMemory::in_unknown_area(std::uint64_t address, int bytes) {
  const std::uint64_t area = address / Effects::area_bytes;
  if ((address + static_cast<std::uint64_t>(bytes) - 1) / Effects::area_bytes != area) return false;
  auto [at, fresh] = areas_.try_emplace(area, false);
  if (fresh)
    at->second = launch_.possible != nullptr &&
                 !launch_.possible(area * Effects::area_bytes, Effects::area_bytes);
  return at->second;
}

void GlobalMemory::note_read(std::uint64_t address, int bytes) {
  const std::uint64_t first = address / line_bytes;
  const std::uint64_t last = (address + static_cast<std::uint64_t>(bytes) - 1) / line_bytes;
  if (too_many_reads_) return;
  for (std::uint64_t line = first; line <= last; ++line)
    if (reads_.empty() || reads_.back() != line) reads_.push_back(line);
  if (reads_.size() < most_reads) return;
  sort_reads();
  too_many_reads_ = reads_.size() > most_reads / 2;
}

void GlobalMemory::sort_reads() {
  std::sort(reads_.begin(), reads_.end());
  reads_.erase(std::unique(reads_.begin(), reads_.end()), reads_.end());
}

bool GlobalMemory::owned(std::uint64_t address, std::uint64_t bytes) {
  if (address >= owned_from_ && address < owned_to_ && bytes <= owned_to_ - address) return true;
  const std::uint64_t extent = launch_.extent ? launch_.extent(address) : 0;
  if (extent < bytes) return false;
  owned_from_ = address, owned_to_ = address + extent;
  return true;
}

const void* GlobalMemory::known_before(std::uint64_t address, int bytes) {
  if (!launch_.known) return nullptr;
  const auto count = static_cast<std::uint64_t>(bytes);
  const std::uint64_t line = address / line_bytes, place = address % line_bytes;
  if (place + count > line_bytes) return launch_.known(address, count);
  if (line != known_line_) {
    known_line_ = line;
    known_bytes_ = static_cast<const std::byte*>(launch_.known(line * line_bytes, line_bytes));
  }
  return known_bytes_ != nullptr ? known_bytes_ + place : launch_.known(address, count);
}

Value GlobalMemory::load(std::uint64_t address, int bytes, std::uint32_t block, bool atomic) {
  Value v;
  if (bytes > 8 || blurred(address, bytes)) return v;
  bool touched = false;
  for (int i = 0; i < bytes && !touched; ++i) {
    auto line = lines_.find((address + i) / line_bytes);
    touched = line != lines_.end() && (line->second.written >> ((address + i) % line_bytes) & 1);
  }
  if (!touched) {
    if (in_unknown_area(address, bytes)) return v;
    note_read(address, bytes);
    const void* from = known_before(address, bytes);
    if (from == nullptr) return v;
    std::memcpy(&v.bits, from, static_cast<std::size_t>(bytes));
    v.known = true;
    return v;
  }
  std::byte out[8]{};
  for (int i = 0; i < bytes; ++i) {
    const std::uint64_t at = address + static_cast<std::uint64_t>(i), place = at % line_bytes;
    auto found = lines_.find(at / line_bytes);
    if (found != lines_.end() && (found->second.written >> place & 1)) {
      const Line& line = found->second;
      if (!(line.known >> place & 1)) return v;
      const std::uint32_t writer = line.writer[place / word];
      const bool waited = ordered_ == block + 1 && writer != several;
      if (!atomic && writer != block + 1 && !waited) return v;
      out[i] = line.data[place];
    } else {
      note_read(at, 1);
      const void* from = known_before(at, 1);
      if (from == nullptr) return v;
      std::memcpy(&out[i], from, 1);
    }
  }
  std::memcpy(&v.bits, out, sizeof out);
  v.known = true;
  return v;
}

GlobalMemory::Line& GlobalMemory::line_of(std::uint64_t number) {
  if (written_ == nullptr || written_number_ != number)
    written_ = &lines_[number], written_number_ = number;
  return *written_;
}

bool GlobalMemory::store(std::uint64_t address, int bytes, const Value& value,
                         std::uint32_t block) {
  if (!owned(address, static_cast<std::uint64_t>(bytes))) return false;
  const bool known = value.known && bytes <= 8;
  wrote_known_ |= known;
  for (int i = 0; i < bytes; ++i) {
    const std::uint64_t at = address + static_cast<std::uint64_t>(i), place = at % line_bytes;
    Line& line = line_of(at / line_bytes);
    const std::uint64_t bit = std::uint64_t{1} << place;
    std::uint32_t& writer = line.writer[place / word];
    writer = writer == 0 || writer == block + 1 ? block + 1 : several;
    line.written |= bit;
    if (known) {
      line.data[place] = static_cast<std::byte>(value.bits >> (8 * i) & 0xff);
      line.known |= bit;
    } else {
      line.known &= ~bit;
    }
  }
  return true;
}

void GlobalMemory::blur(std::uint64_t address) {
  if (std::find(behind_.begin(), behind_.end(), address) == behind_.end())
    behind_.push_back(address);
}

void GlobalMemory::forget(std::uint64_t address) {
  if (std::find(forgotten_.begin(), forgotten_.end(), address) == forgotten_.end())
    forgotten_.push_back(address);
}

// In the same stretch of known bytes as something that was written at an unknown place.
bool GlobalMemory::blurred(std::uint64_t address, int bytes) const {
  constexpr std::uint64_t furthest = 1 << 20;
  return std::any_of(behind_.begin(), behind_.end(), [&](std::uint64_t from) {
    return address >= from && address - from < furthest && launch_.known &&
           launch_.known(from, address - from + static_cast<std::uint64_t>(bytes)) != nullptr;
  });
}

void GlobalMemory::effects(Effects& to) {
  std::vector<std::uint64_t> order;
  order.reserve(lines_.size());
  for (const auto& [number, line] : lines_) order.push_back(number);
  std::sort(order.begin(), order.end());
  for (std::uint64_t number : order) {
    const Line& line = lines_.at(number);
    for (std::uint64_t place = 0; place < line_bytes; ++place) {
      if (!(line.written >> place & 1)) continue;
      const std::uint64_t at = number * line_bytes + place;
      const bool known = (line.known >> place & 1) && !blurred(at, 1);
      if (to.ranges.empty() || to.ranges.back().known != known ||
          to.ranges.back().address + to.ranges.back().bytes != at)
        to.ranges.push_back({at, 0, known, to.data.size()});
      ++to.ranges.back().bytes;
      if (known) to.data.push_back(line.data[place]);
    }
  }
  sort_reads();
  to.lines_read = std::move(reads_);
  for (const auto& [area, unknown] : areas_)
    if (unknown) to.unknown_areas.push_back(area);
  std::sort(to.unknown_areas.begin(), to.unknown_areas.end());
  // What is blurred depends on which bytes around it are known.
  to.repeatable = behind_.empty() && !too_many_reads_;
  to.behind = behind_;
  to.behind.insert(to.behind.end(), forgotten_.begin(), forgotten_.end());
}

Value SharedMemory::load(std::uint64_t address, int bytes) const {
  Value v;
  if (bytes > 8 || address > data_.size() || data_.size() - address < std::uint64_t(bytes))
    return v;
  for (int i = 0; i < bytes; ++i)
    if (!known_[address + static_cast<std::uint64_t>(i)]) return v;
  std::memcpy(&v.bits, data_.data() + address, static_cast<std::size_t>(bytes));
  v.known = true;
  return v;
}

bool SharedMemory::store(std::uint64_t address, int bytes, const Value& value) {
  if (address > data_.size() || data_.size() - address < std::uint64_t(bytes)) return false;
  for (int i = 0; i < bytes; ++i) {
    const std::uint64_t at = address + static_cast<std::uint64_t>(i);
    known_[at] = value.known && bytes <= 8;
    if (known_[at]) data_[at] = static_cast<std::byte>(value.bits >> (8 * i) & 0xff);
  }
  return true;
}

}  // namespace maya::decode::ptx
