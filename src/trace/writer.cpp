#include "trace/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "trace/codec.h"

namespace maya::trace {
namespace {

bool write_all(int file, const void* data, std::size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = ::write(file, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

// File permissions follow the directory: a run directory is private unless its user changed that.
mode_t mode_beside(const std::string& path) {
  const auto slash = path.rfind('/');
  struct stat folder {};
  if (stat(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), &folder) != 0)
    return 0600;
  return folder.st_mode & 0666;
}

std::uint64_t new_session() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) << 30 ^ static_cast<std::uint64_t>(now.tv_nsec)) *
             0x9e3779b97f4a7c15ULL ^
         static_cast<std::uint64_t>(getpid());
}

}  // namespace

Writer::~Writer() { close(); }

Status Writer::open(const std::string& path) {
  path_ = path;
  auto fail = [&](const char* what, const std::string& name) {
    Error error{std::string(what) + " " + name + ": " + std::strerror(errno)};
    if (file_ >= 0 && is_own(path, file_)) ::unlink(path.c_str());
    if (tail_file_ >= 0 && is_own(path + ".tail", tail_file_)) ::unlink((path + ".tail").c_str());
    if (file_ >= 0) ::close(file_);
    if (tail_file_ >= 0) ::close(tail_file_);
    file_ = tail_file_ = -1;
    return error;
  };
  const mode_t mode = mode_beside(path);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, mode);
  if (file_ < 0) return fail("cannot create the recording", path);
  format::FileHeader header{};
  std::memcpy(header.magic, format::file_magic, 8);
  header.version = format_version, header.header_bytes = sizeof header;
  header.session = new_session();
  if (!write_all(file_, &header, sizeof header)) return fail("cannot write the recording", path);

  std::string tail = path + ".tail";
  tail_file_ = ::open(tail.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (tail_file_ < 0) return fail("cannot create", tail);
  // Allocate the blocks now: on a full disk, a write to a hole of a mapped file would kill the
  // user's process with SIGBUS.
  if (int error = posix_fallocate(tail_file_, 0, format::tail_bytes)) {
    errno = error;
    return fail("no room on disk for", tail);
  }
  void* map = mmap(nullptr, format::tail_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, tail_file_, 0);
  if (map == MAP_FAILED) return fail("cannot map", tail);
  tail_ = static_cast<format::TailHeader*>(map);
  std::memcpy(tail_->magic, format::tail_magic, 8);
  tail_->version = format_version, tail_->bytes = format::tail_bytes;
  tail_->session = header.session, tail_->sequence = 0;
  begin_ = next_ = reinterpret_cast<Record*>(static_cast<char*>(map) + format::tail_begin);
  forget_pieces();
  end_ = reinterpret_cast<Record*>(static_cast<char*>(map) + format::tail_bytes);
  return {};
}

void Writer::append(const Wide& wide, const Record& record) {
  lock();
  if (end_ - next_ < 2) rotate();
  if (end_ - next_ >= 2) {
    std::memcpy(static_cast<void*>(next_), &wide, sizeof wide);
    next_[1] = record;
    next_ += 2;
    if (next_ >= piece_end_) seal();
  }
  unlock();
}

void Writer::define(format::Define what, std::uint64_t index, std::string_view payload) {
  const std::size_t units = 1 + (payload.size() + sizeof(Record) - 1) / sizeof(Record);
  const format::DefineUnit head{format::define_kind, what, 0,
                                static_cast<std::uint32_t>(payload.size()), index};
  lock();
  if (static_cast<std::size_t>(end_ - next_) < units) rotate();
  if (next_ != nullptr && static_cast<std::size_t>(end_ - next_) >= units) {
    if (!payload.empty())
      std::memcpy(static_cast<void*>(next_ + 1), payload.data(), payload.size());
    std::memcpy(static_cast<void*>(next_), &head,
                sizeof head);  // last, because its presence means that the payload is complete
    next_ += units;
    if (next_ >= piece_end_) seal();
  } else if (next_ != nullptr) {
    define_alone(head, payload, units);
  }
  unlock();
}

void Writer::define_alone(const format::DefineUnit& head, std::string_view payload,
                          std::size_t units) {
  if (units * sizeof(Record) > format::largest_block)
    return errno = EFBIG, stop("a definition of " + std::to_string(payload.size()) +
                               " bytes has no room in a block");
  std::vector<char> block(units * sizeof(Record));
  std::memcpy(block.data(), &head, sizeof head);
  std::memcpy(block.data() + sizeof head, payload.data(), payload.size());
  if (write_block(block.data(), block.size())) tail_->sequence = ++sequence_;
}

void Writer::rotate() {
  if (next_ != nullptr && next_ != begin_) flush_block();
}

bool Writer::flush_block() {
  const std::size_t raw = static_cast<std::size_t>(next_ - begin_) * sizeof(Record);
  if (!write_block(begin_, raw)) return false;
  // Another process may be reading: it sees the mark before anything is emptied.
  std::atomic_ref(tail_->sequence).store(format::tail_invalid, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  forget_pieces();
  std::memset(static_cast<void*>(begin_), 0, raw);
  std::atomic_ref(tail_->sequence).store(++sequence_, std::memory_order_release);
  next_ = begin_;
  return true;
}

namespace {
std::uint32_t* sums_of(format::TailHeader* tail) {
  return reinterpret_cast<std::uint32_t*>(tail + 1);
}
}  // namespace

void Writer::seal() {
  char* tail = reinterpret_cast<char*>(tail_);
  char* full = reinterpret_cast<char*>(piece_end_);
  const char* written = reinterpret_cast<char*>(next_);
  for (; full <= written; full += format::piece_bytes) {
    const auto piece = static_cast<std::uint32_t>((full - tail) / format::piece_bytes - 1);
    std::atomic_ref(sums_of(tail_)[piece])
        .store(format::piece_checksum(tail, piece), std::memory_order_release);
  }
  piece_end_ = reinterpret_cast<Record*>(full);
}

void Writer::forget_pieces() {
  std::memset(sums_of(tail_), 0, format::pieces * sizeof(std::uint32_t));
  constexpr std::size_t first =
      (format::tail_begin / format::piece_bytes + 1) * format::piece_bytes;
  piece_end_ = reinterpret_cast<Record*>(reinterpret_cast<char*>(tail_) + first);
}

bool Writer::write_block(const void* units, std::size_t raw) {
  std::vector<char> stored(sizeof(format::BlockHeader) + ZSTD_compressBound(raw));
  std::size_t size = ZSTD_compress(stored.data() + sizeof(format::BlockHeader),
                                   stored.size() - sizeof(format::BlockHeader), units, raw, 1);
  if (ZSTD_isError(size)) return errno = ENOMEM, stop("cannot compress"), false;
  format::BlockHeader header{
      format::block_magic, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(raw),
      format::checksum(stored.data() + sizeof(format::BlockHeader), size), sequence_};
  std::memcpy(stored.data(), &header, sizeof header);
  off_t before = lseek(file_, 0, SEEK_END);
  if (!write_all(file_, stored.data(), sizeof header + size)) {
    const int reason = errno;
    std::string why = std::strerror(reason);
    if (before > 0 && ftruncate(file_, before) != 0) why += " (and cannot cut the file back)";
    // The tail keeps the last megabyte, so nothing recorded so far is lost.
    errno = reason;
    return stop(why), false;
  }
  return true;
}

void Writer::stop(const std::string& why) {
  failure_ = why;
  // Tells the reader that the process did not crash. There is only room for the error number.
  if (tail_ != nullptr) tail_->version |= static_cast<std::uint32_t>(errno & 0x7fff) << 16;
  next_ = end_ = nullptr;
  std::fprintf(stderr, "maya: recording %s stops here: %s; what was recorded before is kept\n",
               path_.c_str(), why.c_str());
}

void Writer::close() {
  if (tail_ == nullptr) return;
  define(format::Define::closed, 0, {});
  lock();
  bool whole = next_ != nullptr && (next_ == begin_ || flush_block());
  munmap(tail_, format::tail_bytes);
  tail_ = nullptr;
  next_ = end_ = begin_ = nullptr;
  if (whole && is_own(path_ + ".tail", tail_file_)) ::unlink((path_ + ".tail").c_str());
  ::close(file_), ::close(tail_file_);
  file_ = tail_file_ = -1;
  unlock();
}

void Writer::abandon() {
  if (tail_ == nullptr) return;
  munmap(tail_, format::tail_bytes);
  ::close(file_), ::close(tail_file_);
  tail_ = nullptr;
  next_ = end_ = begin_ = nullptr;
  file_ = tail_file_ = -1;
  busy_.clear();
}

bool Writer::rename(const std::string& path) {
  if (tail_ == nullptr || !is_own(path_, file_)) return false;
  // link() and unlink() instead of rename(), which could replace another rank's recording.
  const std::string tail = path_ + ".tail", new_tail = path + ".tail";
  if (::link(path_.c_str(), path.c_str()) != 0) return false;
  if (!is_own(tail, tail_file_) || ::link(tail.c_str(), new_tail.c_str()) != 0) {
    ::unlink(path.c_str());
    return false;
  }
  ::unlink(path_.c_str());
  ::unlink(tail.c_str());
  path_ = path;
  return true;
}

bool Writer::is_own(const std::string& path, int file) {
  struct stat named {
  }, open{};
  return lstat(path.c_str(), &named) == 0 && fstat(file, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace maya::trace
