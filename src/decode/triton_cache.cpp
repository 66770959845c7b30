#include "decode/triton_cache.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace maya::decode {
namespace {

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> out;
  DIR* d = opendir(directory.c_str());
  if (!d) return out;
  while (const dirent* e = readdir(d)) {
    std::string_view name = e->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  closedir(d);
  return out;
}

// Where the processes of this user may keep Triton's files, by the variables Triton and Inductor
// read.
std::vector<std::string> roots() {
  std::vector<std::string> out;
  auto add_devices = [&out](const std::string& inductor) {  // <inductor>/triton/<device>
    for (const std::string& device : entries(inductor + "/triton"))
      out.push_back(inductor + "/triton/" + device);
  };
  if (const char* p = std::getenv("TRITON_CACHE_DIR")) out.emplace_back(p);
  if (const char* p = std::getenv("TORCHINDUCTOR_CACHE_DIR")) add_devices(p);
  if (const char* p = std::getenv("TRITON_HOME")) out.push_back(std::string(p) + "/.triton/cache");
  if (const char* p = std::getenv("HOME")) out.push_back(std::string(p) + "/.triton/cache");
  const char* temporary = std::getenv("TMPDIR");
  std::string base = temporary ? temporary : "/tmp";
  const char* user = std::getenv("USER");
  if (user) add_devices(base + "/torchinductor_" + user);
  if (geteuid() == 0) add_devices(base + "/torchinductor_root");
  return out;
}

bool read_file(const std::string& path, std::string& out) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  char buffer[65536];
  std::size_t n;
  out.clear();
  while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0) out.append(buffer, n);
  std::fclose(file);
  return true;
}

// Paths of cubins without their endings, by the name of the file: the kernel's, or the beginning of
// it where the kernel names itself after its constants (_matmul_ogs_NNT_bf16…). Folders are read
// once; new ones are looked for on a miss.
class Index {
 public:
  std::vector<std::string> paths(const std::string& kernel, bool refresh) {
    if (refresh)
      for (const std::string& root : roots())
        for (const std::string& entry : entries(root)) {
          std::string folder = root + "/" + entry;
          if (!seen_.insert(folder).second) continue;
          bool complete = false;
          for (const std::string& file : entries(folder)) {
            constexpr std::string_view ending = ".cubin";
            if (file.size() <= ending.size() ||
                file.compare(file.size() - ending.size(), ending.size(), ending) != 0)
              continue;
            const std::string name = file.substr(0, file.size() - ending.size());
            paths_[name].push_back(folder + "/" + name);
            complete = true;
          }
          if (!complete) seen_.erase(folder);  // still being written, or no kernel
        }
    if (auto it = paths_.find(kernel); it != paths_.end()) return it->second;
    std::vector<std::string> out;
    for (const auto& [name, paths] : paths_)
      if (kernel.compare(0, name.size(), name) == 0)
        out.insert(out.end(), paths.begin(), paths.end());
    return out;
  }

 private:
  std::unordered_set<std::string> seen_;
  std::unordered_map<std::string, std::vector<std::string>> paths_;
};

}  // namespace

std::shared_ptr<const std::string> find_triton_file(std::string_view kernel, std::string_view cubin,
                                                    std::string_view ending) {
  static auto* index = new Index;
  static auto* mutex = new std::mutex;
  std::lock_guard guard(*mutex);
  std::string name(kernel);
  for (bool refresh : {false, true}) {
    for (const std::string& path : index->paths(name, refresh)) {
      struct stat status {};
      if (stat((path + ".cubin").c_str(), &status) != 0) continue;
      // The image in memory may be followed by padding; the file never is longer.
      auto size = static_cast<std::size_t>(status.st_size);
      if (size > cubin.size() + 64 || cubin.size() > size + 64) continue;
      std::string bytes;
      if (!read_file(path + ".cubin", bytes)) continue;
      std::size_t common = std::min(bytes.size(), cubin.size());
      if (std::string_view(bytes).substr(0, common) != cubin.substr(0, common)) continue;
      auto text = std::make_shared<std::string>();
      if (read_file(path + std::string(ending), *text)) return text;
    }
  }
  return nullptr;
}

}  // namespace maya::decode
