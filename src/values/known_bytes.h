// Which bytes of device memory have known values, and the values.
//
// Training code looks at small data that came from the host: sizes, flags, indices, object
// collectives. Those bytes are kept at their own device address. Everything a kernel would have
// computed is unknown; reading it gives zeros and is counted.
//
// A bitmap with one bit per 512 bytes says quickly where nothing is known, which is nearly
// everywhere: the launch path asks it for every pointer argument.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace maya::values {

class KnownBytes {
 public:
  static constexpr std::uint64_t grain = 512;
  static constexpr std::uint64_t coarse = grain * 4096;

  // A result that other processes contribute to (a small collective): resolved when somebody looks.
  class Pending {
   public:
    virtual ~Pending() = default;
    // Fills `to` with the bytes, or returns false if they stay unknown. May block on peers.
    virtual bool resolve(void* to, std::uint64_t bytes) = 0;
    // False: too large to be worked out as a whole; it is then unknown to whoever looks.
    virtual bool resolvable(std::uint64_t) const { return true; }
    // A copy of the whole may be promised the same; else it is worked out before it is copied.
    virtual bool copyable() const { return false; }
  };

  KnownBytes(std::uint64_t base, std::uint64_t span);

  // How to wait for a peer. The owner of the values may hold locks of its own while it asks for
  // them; none of them may span the wait. `wait` calls its argument once. Set before first use.
  using Wait = void (*)(const std::function<void()>& resolve);
  void wait_by(Wait wait) { wait_ = wait; }

  bool possible(std::uint64_t address) const {
    std::uint64_t offset = address - base_;
    if (offset >= span_) return false;
    std::uint64_t bit = offset / grain;
    return (bits_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64)) & 1;
  }

  // The same for a range. Long ranges are nearly free: a second bitmap has one bit per 2 MB.
  bool possible_in(std::uint64_t address, std::uint64_t bytes) const;

  void store(std::uint64_t address, const void* from, std::uint64_t bytes);
  // Zeros for unknown bytes; true if all were known.
  bool load(void* to, std::uint64_t address, std::uint64_t bytes);
  void forget(std::uint64_t address, std::uint64_t bytes);
  // The stretch that contains the address is overwritten from there on, by who knows how much.
  void forget_from(std::uint64_t address, std::uint64_t at_most = ~std::uint64_t{0});
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void fill(std::uint64_t address, const void* pattern, std::uint64_t pattern_bytes,
            std::uint64_t bytes);
  // Unknown, but of a kind a host may insist on, such as probabilities that sum to one: whoever
  // copies it to the host reads the pattern, repeated. For kernels it is as unknown as before: a
  // choice between equals would always fall on the first.
  void suppose(std::uint64_t address, const void* pattern, std::uint64_t pattern_bytes,
               std::uint64_t bytes);
  // The pattern (at most 8 bytes, their number in `pattern_bytes`) that all of the range has.
  const void* supposed(std::uint64_t address, std::uint64_t bytes, std::uint64_t& pattern_bytes);
  void promise(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<Pending> pending);
  // What was promised for a stretch that holds the range, and where that stretch begins; or null.
  std::shared_ptr<Pending> promised(std::uint64_t address, std::uint64_t bytes,
                                    std::uint64_t& begin);
  // Some byte of the range is known (or promised).
  bool any(std::uint64_t address, std::uint64_t bytes);
  // Some byte of the range is known, once what is promised there has been worked out.
  bool any_settled(std::uint64_t address, std::uint64_t bytes);
  // Pointer to the bytes if all are known, else null. Valid until the next change there.
  const void* known(std::uint64_t address, std::uint64_t bytes);

  bool usable() const { return bits_ != nullptr; }

 private:
  struct Stretch {
    std::uint64_t end{};
    std::shared_ptr<Pending> pending;  // null: the bytes are there
    std::uint8_t supposed{};           // bytes of the pattern they are supposed to repeat
  };
  using Map = std::map<std::uint64_t, Stretch>;
  void erase(std::uint64_t address, std::uint64_t bytes);
  void insert(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<Pending> pending,
              std::uint8_t supposed = 0);
  // The stretch that holds the address, or the end.
  Map::const_iterator stretch_at(std::uint64_t address) const;
  void settle(std::unique_lock<std::mutex>& lock, std::uint64_t address, std::uint64_t bytes);
  bool covered(std::uint64_t address, std::uint64_t bytes) const;
  bool any_stretch(std::uint64_t address, std::uint64_t bytes) const;
  void set_bits(std::uint64_t address, std::uint64_t bytes);
  void clear_bits(std::uint64_t address, std::uint64_t bytes);
  // Behind the fine bitmap.
  std::atomic<std::uint64_t>* coarse_bits() const { return bits_ + span_ / grain / 64 + 64; }
  bool inside(std::uint64_t address, std::uint64_t bytes) const {
    return address - base_ < span_ && bytes <= span_ - (address - base_);
  }

  std::uint64_t base_, span_;
  std::atomic<std::uint64_t>* bits_ = nullptr;
  Map map_;
  std::mutex mutex_;
  Wait wait_ = [](const std::function<void()>& resolve) { resolve(); };
};

}  // namespace maya::values
