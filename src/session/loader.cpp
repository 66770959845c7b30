#include "session/loader.h"

#include <dirent.h>
#include <dlfcn.h>

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
    libraries_.push_back({std::string(name), directory_ + std::string(name)});
  }
  closedir(entries);
  std::sort(libraries_.begin(), libraries_.end(), [](const Library& a, const Library& b) {
    return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name > b.name;
  });
}

const char* EmulatedLibraries::find(std::string_view wanted) const {
  if (starts_with(wanted, directory_)) return nullptr;
  auto slash = wanted.rfind('/');
  std::string_view name = slash == std::string_view::npos ? wanted : wanted.substr(slash + 1);
  for (const auto& library : libraries_) {
    if (name == library.name || is_versioned_form_of(name, library.name)) {
      return library.path.c_str();
    }
  }
  // Without a version, the newest: what a development link would point to.
  if (name.size() < 4 || name.substr(name.size() - 3) != ".so") return nullptr;
  for (const auto& library : libraries_) {
    if (is_versioned_form_of(library.name, name)) return library.path.c_str();
  }
  return nullptr;
}

void (*library_opens)(const char*) = nullptr;

namespace {

constinit const Next<void*(const char*, int)> real_dlopen("dlopen");

const char* redirected(const char* wanted) {
  if (!wanted || !*wanted) return wanted;
  if (library_opens != nullptr) library_opens(wanted);
  // Never freed: libraries are opened until the very end of a process.
  static const EmulatedLibraries* libraries = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&redirected), &self);
    std::string path = self.dli_fname ? self.dli_fname : "";
    return new EmulatedLibraries(path.substr(0, path.rfind('/')));
  }();
  const char* ours = libraries->find(wanted);
  return ours ? ours : wanted;
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
