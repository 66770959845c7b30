#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace maya::base {
namespace {

class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  operator int() const { return number_; }
  // A network file system may report write errors only at close.
  bool close() {
    const int number = number_;
    number_ = -1;
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

bool write_all(int file, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// /dev/stdout and similar paths cannot be replaced atomically.
bool is_stream(const std::string& path) {
  struct stat info {};
  return (path.starts_with("/dev/") || path.starts_with("/proc/")) &&
         stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most) {
  auto error = [&](const std::string& why) { return Error{"cannot read " + path + ": " + why}; };
  // Without O_NONBLOCK the open of a FIFO waits for its writer.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file < 0) return error(std::strerror(errno));
  struct stat info {};
  if (fstat(file, &info) != 0) return error(std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return error("it is a directory");
  if (!S_ISREG(info.st_mode)) return error("it is not a regular file");
  auto too_large = [&] {
    return error("it is larger than the " + std::to_string(most) + " bytes such a file may have");
  };
  if (info.st_size > 0 && static_cast<std::size_t>(info.st_size) > most) return too_large();
  std::string bytes;
  char part[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(std::strerror(errno));
    if (n == 0) return bytes;
    bytes.append(part, static_cast<std::size_t>(n));
    if (bytes.size() > most) return too_large();
  }
}

Status write_file(const std::string& path, const std::string& bytes) {
  auto error = [&](int number) {
    return Error{"cannot write " + path + ": " + std::strerror(number)};
  };
  if (is_stream(path)) {
    File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file < 0 || !write_all(file, bytes) || !file.close()) return error(errno);
    return {};
  }
  struct stat folder {};
  if (stat(folder_of(path).c_str(), &folder) != 0) return error(errno);
  if (struct stat old{}; lstat(path.c_str(), &old) == 0 && S_ISDIR(old.st_mode))
    return error(EISDIR);
  std::string temporary;
  int number = -1;
  for (int i = 0; i < 100 && number < 0; ++i) {
    temporary = path + ".new-" + std::to_string(getpid()) + "-" + std::to_string(i);
    number = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    folder.st_mode & 0666);
    if (number < 0 && errno != EEXIST) return error(errno);
  }
  if (number < 0) return error(EEXIST);
  File file(number);
  if (!write_all(file, bytes) || !file.close() || rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(temporary.c_str());
    return error(reason);
  }
  return {};
}

}  // namespace maya::base
