#include "session/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

namespace maya::session {

bool mapped(const void* address, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::uintptr_t end = 0;
  if (begin < page || __builtin_add_overflow(begin, bytes, &end)) return false;
  const std::uintptr_t first = begin & ~(page - 1);
  // With MS_ASYNC nothing is written; the kernel only walks the range and says ENOMEM where there
  // is a hole.
  const int before = errno;
  const bool found = msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
  errno = before;
  return found;
}

std::size_t mapped_from(const void* address, std::size_t most) {
  if (!mapped(address, 1)) return 0;
  std::size_t good = 1, bad = most + 1;
  for (std::size_t next = 4096; next <= most && good < next; next *= 2) {
    if (!mapped(address, next)) {
      bad = next;
      break;
    }
    good = next;
  }
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (mapped(address, middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace maya::session
