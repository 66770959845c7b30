// Writes one recording. The hot path (append) takes a spin lock and stores 16 bytes into a mapped
// file, the tail. The operating system keeps these bytes even if the process is killed right after.
// When the tail (1 MiB) is full it is compressed and appended to the recording. Safe to use from
// several threads.
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

  // Creates PATH and PATH.tail. If it fails, the writer ignores everything that is appended.
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

  // Compresses the rest, marks the recording as complete and removes the tail.
  void close();
  // To be called in the child after fork(): closes the files, which belong to the parent.
  void abandon();
  // Moves the recording to another path, when the rank becomes known late. A file that another
  // process created under one of the paths in the meantime is not touched.
  bool rename(const std::string& path);
  const std::string& path() const { return path_; }
  // Why writing stopped early (a full disk); empty if it did not.
  const std::string& failure() const { return failure_; }

 private:
  void lock() {
    while (busy_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  void unlock() { busy_.clear(std::memory_order_release); }
  void rotate();  // empties the tail; called with the lock held; if it fails, next_ == end_
  bool flush_block();
  void seal();  // writes the checksums of full pieces
  void forget_pieces();
  // Writes a definition that is larger than the tail as a block of its own.
  void define_alone(const format::DefineUnit& head, std::string_view payload, std::size_t units);
  bool write_block(const void* units, std::size_t raw);
  void stop(const std::string& why);
  // Whether PATH is still the file this writer has open.
  static bool is_own(const std::string& path, int file);

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Record* next_ = nullptr;
  Record* end_ = nullptr;
  Record* begin_ = nullptr;
  Record* piece_end_ = nullptr;  // end of the piece that is being filled
  format::TailHeader* tail_ = nullptr;
  int file_ = -1, tail_file_ = -1;
  std::uint64_t sequence_ = 0;
  std::string path_, failure_;
};

}  // namespace maya::trace
