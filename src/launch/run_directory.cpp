#include "launch/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/files.h"

namespace maya::launch {

namespace fs = std::filesystem;

namespace {

Error cannot_write(const std::string& path, const std::string& reason) {
  return Error{fmt::format("cannot write {}: {}; choose another place with --out", path, reason)};
}

std::string time_stamp() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

// The manifest identifies a run directory and lists the files that the run has written. Names of
// folders end in /.
constexpr const char* manifest_name = ".manifest";
constexpr const char* manifest_title =
    "# files of a maya run; the next run into this directory removes them";

// Files that the launcher and other maya commands write, or processes of the run before they have a
// rank. Recordings are not listed here: each process adds its own.
constexpr const char* fixed_names[] = {"run.toml",
                                       "device.txt",
                                       "notes.txt",
                                       "unreached.txt",
                                       "prediction.json",
                                       "report.html",
                                       "timeline.pftrace",
                                       "serving.json",
                                       "ended.txt",
                                       "stop",
                                       "first.maya",
                                       "clock",
                                       "probe.txt",
                                       "exchange/",
                                       "ptx/",
                                       "caches/"};

std::string read_small(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The entries of the manifest of an earlier run; nullopt if there is no manifest.
std::optional<std::set<std::string>> manifest_of(const std::string& directory) {
  const std::string path = directory + "/" + manifest_name;
  std::error_code code;
  if (!fs::is_regular_file(fs::symlink_status(path, code))) return std::nullopt;
  std::istringstream lines(read_small(path));
  std::string line;
  if (!std::getline(lines, line) || line != manifest_title) return std::nullopt;
  std::set<std::string> names;
  while (std::getline(lines, line)) {
    const std::string name = line.ends_with('/') ? line.substr(0, line.size() - 1) : line;
    // Only names within this directory are accepted.
    if (!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos)
      names.insert(line);
  }
  return names;
}

// A file that a new run would write or read, but that is not in the manifest and must not be
// removed; empty if there is none.
std::string in_the_way(const std::string& directory, const std::set<std::string>& listed) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory, code)) {
    const std::string name = entry.path().filename().string();
    if (listed.contains(name) || listed.contains(name + "/")) continue;
    bool fixed = false;
    for (const std::string one : fixed_names) fixed |= one == name || one == name + "/";
    const bool recording = (name.starts_with("rank-") || name.starts_with("process-")) &&
                           name.find(".maya") != std::string::npos;
    if (fixed || recording) return name;
  }
  return "";
}

// Creates a private directory. The permissions of an existing one are not changed.
bool make_private(const std::string& path, std::error_code& code) {
  if (mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST || !fs::is_directory(path)) code.assign(errno, std::generic_category());
  return false;
}

}  // namespace

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      shown_(std::move(other.shown_)),
      lock_(std::exchange(other.lock_, -1)),
      replaced_(other.replaced_) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

// The lock outlives the launcher: every process of the run inherits it (the descriptor stays open
// across exec), and the preloaded library takes it again if a program has closed the descriptor.
// All processes hold a shared lock; to begin a run, a launcher needs the exclusive lock. An
// exclusive lock cannot be turned into a shared one atomically, so a second lock, on the directory
// itself, serializes launchers that begin at the same time.
Status RunDirectory::lock(const std::string& shown) {
  const Error taken{
      fmt::format("{} belongs to a run that is still in progress (a process of it may have "
                  "outlived its launcher); name another directory",
                  shown)};
  const int directory = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return cannot_write(shown, std::strerror(errno));
  struct Closed {
    int file;
    ~Closed() { close(file); }
  } closed{directory};
  if (flock(directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return taken;
  const int file =
      open((path_ + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return cannot_write(shown, std::strerror(errno));
  lock_ = fcntl(file, F_DUPFD, first_lock_descriptor);
  if (lock_ < 0) lock_ = fcntl(file, F_DUPFD, 3);
  close(file);
  if (lock_ < 0) return cannot_write(shown, std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return taken;
  flock(lock_, LOCK_SH);
  return clear();
}

// Accepts an empty directory and one with the manifest of an earlier run. A single .lock file is
// left by a launcher that was killed before it wrote the manifest.
Status RunDirectory::check_owner() const {
  std::error_code code;
  if (manifest_of(path_)) return {};
  for (const auto& entry : fs::directory_iterator(path_, code)) {
    if (entry.path().filename() == ".lock" && fs::is_empty(entry.path(), code)) continue;
    return Error{fmt::format(
        "{} is not empty and was not made by `maya run` (it has no {}); name an empty or new "
        "directory",
        shown_, manifest_name)};
  }
  if (code) return cannot_write(shown_, code.message());
  return {};
}

// Removes the files that the earlier run has listed. Called with the lock held.
Status RunDirectory::clear() {
  std::error_code code;
  if (Status status = check_owner(); !status) return status;
  const auto listed = manifest_of(path_);
  if (listed) {
    if (const std::string name = in_the_way(path_, *listed); !name.empty())
      return Error{
          fmt::format("{}/{} does not belong to the earlier run and would be overwritten; move it, "
                      "or name another directory",
                      shown_, name)};
    for (std::string name : *listed) {
      const bool folder = name.ends_with('/');
      if (folder) name.pop_back();
      const fs::path path = fs::path(path_) / name;
      const auto type = fs::symlink_status(path, code).type();
      if (type == fs::file_type::not_found) continue;
      if ((type == fs::file_type::directory) != folder) continue;  // differs from the manifest
      replaced_ = true;
      fs::remove_all(path, code);
      if (code) return cannot_write(path.string(), code.message());
    }
  }
  std::string text = std::string(manifest_title) + "\n";
  for (const char* name : fixed_names) text += std::string(name) + "\n";
  return write_file(path_ + "/" + manifest_name, text);
}

Result<RunDirectory> RunDirectory::create(const std::string& wanted, const std::string& name) {
  RunDirectory run;
  std::error_code code;
  if (wanted.empty()) {
    fs::create_directories("maya-runs", code);
    if (code) return cannot_write("./maya-runs", code.message());
    std::string base = fmt::format("maya-runs/{}-{}", time_stamp(), name);
    run.shown_ = base;
    for (int i = 2; !make_private(run.shown_, code); ++i) {
      if (code) return cannot_write(run.shown_, code.message());
      run.shown_ = fmt::format("{}-{}", base, i);
    }
  } else {
    run.shown_ = wanted;
    const fs::path parent = fs::path(wanted).lexically_normal().parent_path();
    if (!parent.empty()) fs::create_directories(parent, code);
    if (code) return cannot_write(wanted, code.message());
    make_private(wanted, code);
    if (code) return cannot_write(wanted, code.message());
  }
  run.path_ = fs::absolute(run.shown_).lexically_normal().string();
  if (run.path_.size() > 1 && run.path_.back() == '/') run.path_.pop_back();
  if (Status status = run.check_owner(); !status) return status.error();  // before writing files
  if (Status status = run.lock(run.shown_); !status) return status.error();
  return run;
}

void list_in_manifest(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + manifest_name;
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  const std::string line = name + "\n";
  [[maybe_unused]] ssize_t ignored = write(file, line.data(), line.size());
  close(file);
}

void name_orphans(const std::string& directory) {
  std::vector<std::string> orphans;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.rfind("process-", 0) == 0 && entry.path().extension() == ".maya")
      orphans.push_back(entry.path());
  }
  std::sort(orphans.begin(), orphans.end());
  for (const auto& orphan : orphans) {
    std::string rank = directory + "/rank-0.maya";
    for (int i = 2; fs::exists(rank); ++i) rank = fmt::format("{}/rank-0.{}.maya", directory, i);
    for (const char* end : {".maya", ".maya.tail"})
      list_in_manifest(directory, fs::path(rank).stem().string() + end);
    fs::rename(orphan + ".tail", rank + ".tail", ignored);
    fs::rename(orphan, rank, ignored);
  }
}

Status write_file(const std::string& path, const std::string& text) {
  if (Status status = base::write_file(path, text); !status)
    return Error{status.error().message + "; choose another place with --out"};
  return {};
}

}  // namespace maya::launch
