#include "launch/packages.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

namespace maya::launch {

namespace fs = std::filesystem;

namespace {

// The headers of one ELF file. Reads only a few kilobytes of it.
class Elf {
 public:
  static std::optional<Elf> open(const fs::path& path) {
    Elf elf(path);
    Elf64_Ehdr header{};
    if (!elf.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
      return std::nullopt;
    }
    elf.sections_.resize(header.e_shnum);
    if (!elf.read(header.e_shoff, elf.sections_.data(), elf.sections_.size() * sizeof(Elf64_Shdr)))
      return std::nullopt;
    if (header.e_shstrndx >= elf.sections_.size()) return std::nullopt;
    elf.names_ = elf.content(elf.sections_[header.e_shstrndx]);
    return elf;
  }

  const Elf64_Shdr* section(std::string_view name) const {
    for (const auto& section : sections_) {
      if (section.sh_name < names_.size() && name == names_.c_str() + section.sh_name)
        return &section;
    }
    return nullptr;
  }

  bool needs(std::string_view start) {
    const Elf64_Shdr *dynamic = section(".dynamic"), *strings = section(".dynstr");
    if (dynamic == nullptr || strings == nullptr) return false;
    std::string entries = content(*dynamic), text = content(*strings);
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < text.size() &&
          std::string_view(text.c_str() + entry.d_un.d_val).substr(0, start.size()) == start) {
        return true;
      }
    }
    return false;
  }

  bool imports(std::string_view symbol) {
    const Elf64_Shdr* strings = section(".dynstr");
    if (strings == nullptr) return false;
    std::string wanted = '\0' + std::string(symbol) + '\0';
    return content(*strings).find(wanted) != std::string::npos;
  }

 private:
  explicit Elf(const fs::path& path) : file_(path, std::ios::binary) {}

  bool read(std::uint64_t offset, void* to, std::size_t bytes) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    return static_cast<bool>(file_);
  }

  std::string content(const Elf64_Shdr& section) {
    constexpr std::uint64_t largest = 64 << 20;  // limit for string tables of damaged files
    if (section.sh_type == SHT_NOBITS || section.sh_size > largest) return "";
    std::string bytes(section.sh_size, '\0');
    return read(section.sh_offset, bytes.data(), bytes.size()) ? bytes : "";
  }

  std::ifstream file_;
  std::vector<Elf64_Shdr> sections_;
  std::string names_;
};

bool is_shared_library(const fs::path& path) {
  std::string name = path.filename();
  return name.size() > 3 && (path.extension() == ".so" || name.find(".so.") != std::string::npos);
}

}  // namespace

std::vector<UnreachedLibrary> unreached_libraries(const std::string& folder) {
  // auditwheel adds a hash to the name of libcudart.so.11.0, so that no other copy is loaded
  // instead.
  static const std::regex private_name(R"(libcudart[-.][0-9a-f]{6,}\.so.*)");
  using Kind = UnreachedLibrary::Kind;
  std::vector<UnreachedLibrary> found;
  std::error_code error;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    // NVIDIA's own folder contains the libraries that are emulated.
    if (path.filename() == "nvidia" && at.depth() == 0) at.disable_recursion_pending();
    if (!at->is_regular_file(error) || !is_shared_library(path)) continue;
    if (std::regex_match(path.filename().string(), private_name)) {
      found.push_back({Kind::private_runtime, path});
      continue;
    }
    auto elf = Elf::open(path);
    if (elf && elf->section(".nv_fatbin") != nullptr && !elf->needs("libcudart") &&
        !elf->imports("__cudaRegisterFatBinary")) {
      found.push_back({Kind::static_runtime, path});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

}  // namespace maya::launch
