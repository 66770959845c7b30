// What another process of the job wrote for this one (values/exchange.h).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "values/exchange.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = "/tmp/maya-exchange-fuzzer-" + std::to_string(getpid());
  {
    maya::values::Exchange exchange(folder, 42, 0, 2);
    const int file =
        open((folder + "/000000000000002a-1").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
    close(file);
    for (std::uint64_t key = 0; key < 3; ++key) {
      const auto entry = exchange.await(1, key, 0);
      // Zeros take no room in the log, but there is a limit to them.
      if (entry.data.size() > std::max(size, std::size_t{1} << 20)) __builtin_trap();
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
