// A recording is untrusted input. The bytes are either the units of one valid block, so that the
// fuzzer reaches the code after the checksum, or a whole file, so that it also tests the headers.
#include <unistd.h>
#include <zstd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "maya/trace.h"
#include "trace/format.h"

using namespace maya::trace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const std::string path = "/tmp/maya-recording-fuzzer-" + std::to_string(getpid());
  std::string file;
  if (data[0] & 1) {
    std::size_t raw = (size - 1) / 16 * 16;
    if (raw > format::tail_bytes) return 0;
    format::FileHeader header{};
    __builtin_memcpy(header.magic, format::file_magic, 8);
    header.version = format_version, header.header_bytes = sizeof header;
    std::vector<char> packed(ZSTD_compressBound(raw));
    std::size_t stored = ZSTD_compress(packed.data(), packed.size(), data + 1, raw, 1);
    format::BlockHeader block{format::block_magic, static_cast<std::uint32_t>(stored),
                              static_cast<std::uint32_t>(raw),
                              format::checksum(packed.data(), stored), 0};
    file.append(reinterpret_cast<char*>(&header), sizeof header);
    file.append(reinterpret_cast<char*>(&block), sizeof block);
    file.append(packed.data(), stored);
  } else {
    file.assign(reinterpret_cast<const char*>(data + 1), size - 1);
  }
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr) return 0;
  std::fwrite(file.data(), 1, file.size(), out);
  std::fclose(out);
  auto recording = read(path);
  if (!recording && recording.error().message.find(path) == std::string::npos)
    __builtin_trap();  // names the file
  std::remove(path.c_str());
  return 0;
}
