// What the kernel says of a thread: whether it sleeps, and how much it has run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace maya::clock {

struct Sight {
  enum class What : std::uint8_t {
    gone,     // the thread has ended
    asleep,   // waits for something, and for nothing of a disk
    at_work,  // runs, waits for a processor, or for a disk
    stopped,  // by a signal or a debugger
  } what{What::gone};
  std::int64_t cpu_ns{};  // processor time so far
  std::uint64_t turns{};  // how often it was given a processor: unchanged means it has not run
};

// Reads /proc. Files stay open, as far as the limit of descriptors allows.
class KernelView {
 public:
  KernelView() = default;
  KernelView(const KernelView&) = delete;
  KernelView& operator=(const KernelView&) = delete;
  ~KernelView();

  // `index`: of the caller's choice, one for each thread.
  Sight look(std::uint32_t index, std::int32_t process, std::int32_t thread);
  // Only how often it was given a processor; 0: gone.
  std::uint64_t turns(std::uint32_t index, std::int32_t process, std::int32_t thread);

 private:
  struct Thread {
    std::int32_t process{}, thread{};
    int stat{-1}, schedstat{-1}, syscall{-1};
    std::uint64_t asleep_turns{~std::uint64_t{0}};  // found asleep with so many turns
  };
  Thread& thread(std::uint32_t index, std::int32_t process, std::int32_t id);
  void close(Thread& thread);
  long read(Thread& t, int& file, const char* name, char* text, std::size_t size);
  bool schedule(Thread& t, Sight& sight);
  std::optional<bool> off_processor(Thread& t);

  std::vector<Thread> threads_;
  int open_{};
};

}  // namespace maya::clock
