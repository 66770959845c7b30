#include "values/exchange.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace maya::values {
namespace {

constexpr std::uint32_t entry_magic = 0x4d455843;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;  // of an entry

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Peers share few cores with us: yield them quickly, then poll ever more lazily.
void pause(std::uint32_t seen, int round) {
  if (exchange_waits.await != nullptr) return exchange_waits.await(seen, round);
  timespec t{0, round < 50 ? 50000 : round < 500 ? 500000 : 5000000};
  nanosleep(&t, nullptr);
}

std::uint32_t news() { return exchange_waits.news != nullptr ? exchange_waits.news() : 0; }

struct Awaited {
  bool any{};
  ~Awaited() {
    if (any && exchange_waits.awaited != nullptr) exchange_waits.awaited();
  }
};

}  // namespace

ExchangeWaits exchange_waits;

Exchange::Exchange(std::string directory, std::uint64_t id, int rank, int size)
    : directory_(std::move(directory)),
      id_(id),
      rank_(rank),
      size_(size),
      peers_(static_cast<std::size_t>(size)) {
  if (directory_.empty()) return;
  mkdir(directory_.c_str(), 0755);
  own_ = ::open(path(rank).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (exchange_waits.tell != nullptr) exchange_waits.tell();
}

Exchange::~Exchange() {
  if (own_ >= 0) ::close(own_);
  for (auto& peer : peers_)
    if (peer.file >= 0) ::close(peer.file);
}

std::string Exchange::path(int rank) const {
  char name[64];
  std::snprintf(name, sizeof name, "/%016llx-%d", static_cast<unsigned long long>(id_), rank);
  return directory_ + name;
}

void Exchange::post(std::uint64_t key, const void* data, std::uint64_t bytes) {
  if (own_ < 0) return;
  std::lock_guard guard(mutex_);
  std::vector<char> entry(sizeof(Header) + (data != nullptr ? bytes : 0));
  Header header{key, data != nullptr ? bytes : 0, data != nullptr, entry_magic};
  std::memcpy(entry.data(), &header, sizeof header);
  if (data != nullptr) std::memcpy(entry.data() + sizeof header, data, bytes);
  // One write: a reader sees the entry whole or sees that it is not there yet.
  if (pwrite(own_, entry.data(), entry.size(), static_cast<off_t>(end_)) ==
      static_cast<ssize_t>(entry.size()))
    end_ += entry.size();
  if (exchange_waits.tell != nullptr) exchange_waits.tell();
}

bool Exchange::advance(Peer& peer, int rank) {
  if (peer.file < 0) peer.file = ::open(path(rank).c_str(), O_RDONLY | O_CLOEXEC);
  if (peer.file < 0) return false;
  bool any = false;
  for (;;) {
    Header header;
    if (pread(peer.file, &header, sizeof header, static_cast<off_t>(peer.position)) !=
        sizeof header)
      return any;
    if (header.magic != entry_magic) return any;
    struct stat info {};
    const std::uint64_t begin = peer.position + sizeof header;
    if (fstat(peer.file, &info) != 0 || header.bytes > most_bytes ||
        static_cast<std::uint64_t>(info.st_size) < begin + header.bytes)
      return any;
    const std::uint64_t end = begin + header.bytes;
    peer.entries[header.key] = {peer.position + sizeof header, header.bytes, header.known != 0};
    peer.position = end;
    any = true;
  }
}

Exchange::Entry Exchange::await(int rank, std::uint64_t key, double seconds) {
  Entry entry;
  if (own_ < 0 || rank < 0 || rank >= size_) return entry;
  double deadline = now() + seconds;
  Awaited awaited;
  for (int round = 0;; ++round) {
    const std::uint32_t seen = news();
    {
      std::lock_guard guard(mutex_);
      const bool absent = peers_[static_cast<std::size_t>(rank)].absent;
      if (absent) rank = rank_;
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      auto it = peer.entries.find(key);
      if (it == peer.entries.end() && advance(peer, rank)) it = peer.entries.find(key);
      if (it != peer.entries.end()) {
        entry.arrived = true;
        entry.known = it->second.known;
        entry.data.resize(it->second.bytes);
        if (!entry.data.empty() && pread(peer.file, entry.data.data(), entry.data.size(),
                                         static_cast<off_t>(it->second.position)) !=
                                       static_cast<ssize_t>(entry.data.size()))
          entry.known = false;
        return entry;
      }
      entry.arrived = absent;
      if (absent) return entry;
    }
    if (now() > deadline) return entry;
    pause(seen, round);
    awaited.any = true;
  }
}

std::vector<Exchange::Entry> Exchange::gather(std::uint64_t key, double seconds) {
  std::vector<Entry> entries;
  double deadline = now() + seconds;
  for (int rank = 0; rank < size_; ++rank) {
    double left = deadline - now();
    entries.push_back(await(rank, key, left > 0 ? left : 0));
  }
  return entries;
}

void Exchange::declare_absent(int rank) {
  std::lock_guard guard(mutex_);
  if (rank != rank_ && rank >= 0 && rank < size_)
    peers_[static_cast<std::size_t>(rank)].absent = true;
}

void Exchange::await_appearance(double seconds) {
  const double deadline = now() + seconds;
  for (int rank = 0; rank < size_; ++rank)
    for (int round = 0;; ++round) {
      const std::uint32_t seen = news();
      if (rank == rank_ || access(path(rank).c_str(), F_OK) == 0) break;
      if (now() > deadline) {
        declare_absent(rank);
        break;
      }
      pause(seen, round);
    }
}

bool Exchange::is_absent(int rank) const {
  std::lock_guard guard(mutex_);
  return rank >= 0 && rank < size_ && peers_[static_cast<std::size_t>(rank)].absent;
}

int Exchange::absent() const {
  std::lock_guard guard(mutex_);
  int count = 0;
  for (const Peer& peer : peers_) count += peer.absent;
  return count;
}

}  // namespace maya::values
