#include "session/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "session/next.h"

namespace maya::session {

namespace {

constexpr std::string_view ours_alone = "libmaya_";

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool is_versioned_form_of(std::string_view longer, std::string_view shorter) {
  return longer.size() > shorter.size() && starts_with(longer, shorter) &&
         longer[shorter.size()] == '.';
}

}  // namespace

EmulatedLibraries::EmulatedLibraries(const std::string& directory) : directory_(directory + "/") {
  DIR* entries = opendir(directory.c_str());
  if (!entries) return;
  while (const dirent* entry = readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!starts_with(name, "lib") || starts_with(name, ours_alone)) continue;
    if (name.find(".so.") == std::string_view::npos) continue;  // links for the linker
    libraries_.push_back({std::string(name), directory_ + std::string(name),
                          std::string(name) + " (the program uses another version)"});
  }
  closedir(entries);
  std::sort(libraries_.begin(), libraries_.end(), [](const Library& a, const Library& b) {
    return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name > b.name;
  });
}

const char* EmulatedLibraries::find(std::string_view wanted,
                                    const std::vector<std::string>& needed) const {
  auto is_needed = [&](const Library& library) {
    return std::find(needed.begin(), needed.end(), library.name) != needed.end();
  };
  if (starts_with(wanted, directory_)) return nullptr;
  auto slash = wanted.rfind('/');
  std::string_view name = slash == std::string_view::npos ? wanted : wanted.substr(slash + 1);
  for (const auto& library : libraries_) {
    if (name == library.name || is_versioned_form_of(name, library.name)) {
      const std::string stem = library.name.substr(0, library.name.find(".so.") + 3);
      const bool another = slash == std::string_view::npos && !is_needed(library) &&
                           std::any_of(libraries_.begin(), libraries_.end(), [&](const Library& l) {
                             return is_versioned_form_of(l.name, stem) && is_needed(l);
                           });
      return another ? library.absent.c_str() : library.path.c_str();
    }
  }
  // Without a version, the one the program is linked with, else the newest: what a development link
  // would point to.
  if (name.size() < 4 || name.substr(name.size() - 3) != ".so") return nullptr;
  const Library* found = nullptr;
  for (const auto& library : libraries_) {
    if (!is_versioned_form_of(library.name, name)) continue;
    if (found == nullptr || (!is_needed(*found) && is_needed(library))) found = &library;
  }
  return found != nullptr ? found->path.c_str() : nullptr;
}

void (*library_opens)(const char*) = nullptr;

namespace {

constinit const Next<void*(const char*, int)> real_dlopen("dlopen");

// What the loaded libraries are linked with, except our own.
std::vector<std::string> needed_by_loaded(const std::string& our_directory) {
  struct Search {
    const std::string& ours;
    std::vector<std::string> names;
  } search{our_directory, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (object->dlpi_name != nullptr && starts_with(object->dlpi_name, s.ours)) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
          const auto* dynamic =
              reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
          // glibc has made the address absolute, except in the kernel's object.
          const char* strings = nullptr;
          for (const auto* d = dynamic; d->d_tag != DT_NULL; ++d)
            if (d->d_tag == DT_STRTAB && d->d_un.d_ptr > object->dlpi_addr)
              strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
          for (const auto* d = dynamic; strings != nullptr && d->d_tag != DT_NULL; ++d)
            if (d->d_tag == DT_NEEDED) s.names.emplace_back(strings + d->d_un.d_val);
        }
        return 0;
      },
      &search);
  return std::move(search.names);
}

const char* redirected(const char* wanted) {
  if (!wanted || !*wanted) return wanted;
  if (library_opens != nullptr) library_opens(wanted);
  // Never freed: libraries are opened until the very end of a process.
  static const std::string* directory = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&redirected), &self);
    std::string path = self.dli_fname ? self.dli_fname : "";
    return new std::string(path.substr(0, path.rfind('/')));
  }();
  static const auto* libraries = new EmulatedLibraries(*directory);
  if (!libraries->may_have(wanted)) return wanted;
  return libraries->find(wanted, needed_by_loaded(*directory + "/"));
}

}  // namespace

// Programs that open NVIDIA's libraries by path (torch with its NVIDIA packages, JAX, CuPy) get
// ours. glibc resolves $ORIGIN and the caller's RUNPATH from the return address of dlopen, so this
// has to end in a jump, with nothing left on the stack: hence the optimization whatever the build.
extern "C" __attribute__((visibility("default"), optimize("O2", "omit-frame-pointer"),
                          no_sanitize("all"))) void*
dlopen(const char* wanted, int mode) {
  return real_dlopen.get()(redirected(wanted), mode);
}

}  // namespace maya::session
