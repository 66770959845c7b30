// The tail of a process that was killed. The bytes are its units, with correct checksums, or a
// whole tail file.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "maya/trace.h"
#include "trace/format.h"

using namespace maya::trace;

namespace {

void write(const std::string& path, const std::string& bytes) {
  if (std::FILE* out = std::fopen(path.c_str(), "wb")) {
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const std::string path = "/tmp/maya-tail-fuzzer-" + std::to_string(getpid());
  format::FileHeader header{};
  std::memcpy(header.magic, format::file_magic, 8);
  header.version = format_version, header.header_bytes = sizeof header;
  write(path, std::string(reinterpret_cast<const char*>(&header), sizeof header));
  std::string tail(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] & 1) {
    if (tail.size() > format::tail_bytes - format::tail_begin) return 0;
    std::string units = std::move(tail);
    tail.assign(format::tail_bytes, '\0');
    format::TailHeader head{};
    std::memcpy(head.magic, format::tail_magic, 8);
    head.version = format_version, head.bytes = format::tail_bytes;
    std::memcpy(tail.data(), &head, sizeof head);
    std::memcpy(tail.data() + format::tail_begin, units.data(), units.size());
    const std::size_t end = format::tail_begin + units.size();
    for (std::uint32_t piece = format::tail_begin / format::piece_bytes;
         (piece + 1) * format::piece_bytes <= end; ++piece) {
      const std::uint32_t sum = format::piece_checksum(tail.data(), piece);
      std::memcpy(tail.data() + sizeof head + piece * sizeof sum, &sum, sizeof sum);
    }
  }
  write(path + ".tail", tail);
  auto recording = read(path);
  if (!recording && recording.error().message.find(path) == std::string::npos) __builtin_trap();
  std::remove(path.c_str());
  std::remove((path + ".tail").c_str());
  return 0;
}
