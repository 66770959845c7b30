#include "launch/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

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

// What a run leaves behind, and nothing else: replacing a run must not cost a user their files.
bool belongs_to_a_run(const fs::path& entry) {
  std::string name = entry.filename().string();
  return name == "run.toml" || name == "device.txt" || name == "prediction.json" ||
         name == "report.html" || name == "timeline.pftrace" || name == "notes.txt" ||
         name == "unreached.txt" || name == "stop" || name == ".lock" || name == "stdout" ||
         name == "exchange" || name == "ptx" || name.rfind("rank-", 0) == 0 ||
         name.rfind("process-", 0) == 0;
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

Result<RunDirectory> RunDirectory::create(const std::string& wanted, const std::string& name) {
  RunDirectory run;
  std::error_code code;
  if (wanted.empty()) {
    fs::create_directories("maya-runs", code);
    if (code) return cannot_write("./maya-runs", code.message());
    std::string base = fmt::format("maya-runs/{}-{}", time_stamp(), name);
    run.shown_ = base;
    for (int i = 2; !fs::create_directory(run.shown_, code); ++i) {
      if (code) return cannot_write(run.shown_, code.message());
      run.shown_ = fmt::format("{}-{}", base, i);
    }
  } else {
    run.shown_ = wanted;
    fs::create_directories(wanted, code);
    if (code) return cannot_write(wanted, code.message());
  }
  run.path_ = fs::absolute(run.shown_).lexically_normal().string();
  if (run.path_.size() > 1 && run.path_.back() == '/') run.path_.pop_back();

  std::string lock = run.path_ + "/.lock";
  bool foreign = !wanted.empty() && !fs::exists(run.path_ + "/run.toml") &&
                 !fs::is_empty(run.path_, code) && !fs::exists(lock);
  if (foreign) {
    return Error{
        fmt::format("{} is not empty and holds no run; name an empty or new directory", wanted)};
  }
  run.lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (run.lock_ < 0) return cannot_write(run.shown_, std::strerror(errno));
  if (flock(run.lock_, LOCK_EX | LOCK_NB) != 0) {
    return Error{
        fmt::format("{} belongs to a run that is still going; name another directory", run.shown_)};
  }
  for (const auto& entry : fs::directory_iterator(run.path_, code)) {
    if (entry.path() == lock || !belongs_to_a_run(entry.path())) continue;
    run.replaced_ = true;
    fs::remove_all(entry.path(), code);
    if (code) return cannot_write(entry.path().string(), code.message());
  }
  return run;
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
    fs::rename(orphan + ".tail", rank + ".tail", ignored);
    fs::rename(orphan, rank, ignored);
  }
}

Status write_file(const std::string& path, const std::string& text) {
  std::string temporary = path + ".new";
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return cannot_write(path, std::strerror(errno));
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int reason = errno;
      close(file);
      unlink(temporary.c_str());
      return cannot_write(path, std::strerror(reason));
    }
    done += static_cast<std::size_t>(n);
  }
  if (close(file) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    return cannot_write(path, std::strerror(errno));
  }
  return {};
}

}  // namespace maya::launch
