// Writes one recording. The hot path (append) is a spin lock and a 16-byte store into a mapped
// file: the kernel keeps what was written even if the process is killed the next moment. A full
// megabyte is compressed and appended to the recording proper.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "maya/trace.h"
#include "trace/format.h"

namespace maya::trace {

class Writer {
 public:
  Writer() = default;
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Creates PATH and PATH.tail. On failure returns why, and the writer swallows what it is given.
  Status open(const std::string& path);
  bool is_open() const { return tail_ != nullptr; }

  void append(const Record& record) {
    lock();
    if (next_ == end_) [[unlikely]]
      rotate();
    if (next_ != end_) {
      *next_++ = record;
      if (next_ >= piece_end_) [[unlikely]]
        seal();
    }
    unlock();
  }
  void append(const Wide& wide, const Record& record);

  void define(format::Define what, std::uint64_t index, std::string_view payload);

  // Compresses what is left, marks the recording complete and removes the tail.
  void close();
  // After fork, in the child: the files belong to the parent.
  void abandon();
  // Moves the recording to another name (its rank became known late). A file that somebody else put
  // under one of the names in the meantime is left alone.
  bool rename(const std::string& path);
  const std::string& path() const { return path_; }
  // Why writing stopped early (full disk), empty if it did not.
  const std::string& failure() const { return failure_; }

 private:
  void lock() {
    while (busy_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  void unlock() { busy_.clear(std::memory_order_release); }
  void rotate();  // makes room, under the lock; on failure leaves next_ == end_
  bool flush_block();
  void seal();  // the checksums of the pieces that are full
  void forget_pieces();
  // A definition larger than the tail.
  void define_alone(const format::DefineUnit& head, std::string_view payload, std::size_t units);
  bool write_block(const void* units, std::size_t raw);
  void stop(const std::string& why);
  // Whether PATH is still the file this writer has open.
  static bool is_own(const std::string& path, int file);

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Record* next_ = nullptr;
  Record* end_ = nullptr;
  Record* begin_ = nullptr;
  Record* piece_end_ = nullptr;  // of the piece that is being filled
  format::TailHeader* tail_ = nullptr;
  int file_ = -1, tail_file_ = -1;
  std::uint64_t sequence_ = 0;
  std::string path_, failure_;
};

}  // namespace maya::trace
