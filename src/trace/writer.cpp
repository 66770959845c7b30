#include "trace/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
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
    if (file_ >= 0) ::close(file_), ::unlink(path.c_str());
    if (tail_file_ >= 0) ::close(tail_file_), ::unlink((path + ".tail").c_str());
    file_ = tail_file_ = -1;
    return error;
  };
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644);
  if (file_ < 0) return fail("cannot create the recording", path);
  format::FileHeader header{};
  std::memcpy(header.magic, format::file_magic, 8);
  header.version = format_version, header.header_bytes = sizeof header;
  header.session = new_session();
  if (!write_all(file_, &header, sizeof header)) return fail("cannot write the recording", path);

  std::string tail = path + ".tail";
  tail_file_ = ::open(tail.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (tail_file_ < 0) return fail("cannot create", tail);
  // Allocate for real: a write to a mapped hole on a full disk would kill the user's process
  // (SIGBUS).
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
  begin_ = next_ = reinterpret_cast<Record*>(tail_ + 1);
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
                sizeof head);  // last: its presence vouches for the payload
    next_ += units;
  } else if (next_ != nullptr) {
    define_alone(head, payload, units);
  }
  unlock();
}

void Writer::define_alone(const format::DefineUnit& head, std::string_view payload,
                          std::size_t units) {
  if (units * sizeof(Record) > format::largest_block)
    return stop("a definition of " + std::to_string(payload.size()) +
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
  tail_->sequence = format::tail_invalid;
  std::memset(static_cast<void*>(begin_), 0, raw);
  tail_->sequence = ++sequence_;
  next_ = begin_;
  return true;
}

bool Writer::write_block(const void* units, std::size_t raw) {
  std::vector<char> stored(sizeof(format::BlockHeader) + ZSTD_compressBound(raw));
  std::size_t size = ZSTD_compress(stored.data() + sizeof(format::BlockHeader),
                                   stored.size() - sizeof(format::BlockHeader), units, raw, 1);
  if (ZSTD_isError(size)) return stop("cannot compress"), false;
  format::BlockHeader header{
      format::block_magic, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(raw),
      format::checksum(stored.data() + sizeof(format::BlockHeader), size), sequence_};
  std::memcpy(stored.data(), &header, sizeof header);
  off_t before = lseek(file_, 0, SEEK_END);
  if (!write_all(file_, stored.data(), sizeof header + size)) {
    std::string why = std::strerror(errno);
    if (before > 0 && ftruncate(file_, before) != 0) why += " (and cannot cut the file back)";
    // The tail keeps the last megabyte, so nothing recorded so far is lost.
    return stop(why), false;
  }
  return true;
}

void Writer::stop(const std::string& why) {
  failure_ = why;
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
  ::close(file_), ::close(tail_file_);
  file_ = tail_file_ = -1;
  if (whole) ::unlink((path_ + ".tail").c_str());
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
  if (tail_ == nullptr) return false;
  // link+unlink rather than rename: never replaces another rank's recording.
  if (::link(path_.c_str(), path.c_str()) != 0) return false;
  ::unlink(path_.c_str());
  ::rename((path_ + ".tail").c_str(), (path + ".tail").c_str());
  path_ = path;
  return true;
}

}  // namespace maya::trace
