#include "decode/assembled.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace maya::decode {
namespace {

std::string path_of(const std::string& run_directory, std::string_view cubin) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c : cubin) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char name[32];
  std::snprintf(name, sizeof name, "/ptx/%016llx.ptx", static_cast<unsigned long long>(hash));
  return run_directory + name;
}

}  // namespace

void keep_assembled(const std::string& run_directory, std::string_view cubin,
                    std::string_view ptx) {
  mkdir((run_directory + "/ptx").c_str(), 0755);
  std::string path = path_of(run_directory, cubin), part = path + "." + std::to_string(getpid());
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (!file) return;
  bool whole = std::fwrite(ptx.data(), 1, ptx.size(), file) == ptx.size();
  whole &= std::fclose(file) == 0;
  if (!whole || std::rename(part.c_str(), path.c_str()) != 0) std::remove(part.c_str());
}

std::shared_ptr<const std::string> find_assembled(const std::string& run_directory,
                                                  std::string_view cubin) {
  std::FILE* file = std::fopen(path_of(run_directory, cubin).c_str(), "rb");
  if (!file) return nullptr;
  auto text = std::make_shared<std::string>();
  char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    text->append(buffer, n);
  std::fclose(file);
  return text;
}

}  // namespace maya::decode
