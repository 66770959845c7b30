// Finds the class with the earliest next event: a tournament tree over keys.
#pragma once

#include <cstdint>
#include <vector>

namespace maya::simulate {

class Schedule {
 public:
  explicit Schedule(std::size_t count) {
    while (width_ < count) width_ *= 2;
    keys_.assign(width_, INT64_MAX);
    winner_.resize(2 * width_);
    for (std::size_t i = 0; i < width_; ++i) winner_[width_ + i] = static_cast<std::uint32_t>(i);
    for (std::size_t i = width_ - 1; i > 0; --i) play(i);
  }
  void set(std::uint32_t who, std::int64_t key) {
    keys_[who] = key;
    for (std::size_t i = (width_ + who) / 2; i > 0; i /= 2) play(i);
  }
  std::uint32_t first() const { return width_ == 1 ? 0 : winner_[1]; }
  std::int64_t key() const { return keys_[first()]; }

 private:
  void play(std::size_t i) {
    std::uint32_t a = winner_[2 * i], b = winner_[2 * i + 1];
    winner_[i] = keys_[b] < keys_[a] ? b : a;  // ties are resolved in favour of the lower class
  }
  std::size_t width_{1};
  std::vector<std::int64_t> keys_;
  std::vector<std::uint32_t> winner_;
};

}  // namespace maya::simulate
