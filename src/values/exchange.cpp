#include "values/exchange.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace maya::values {
namespace {

constexpr std::uint32_t entry_magic = 0x4d455843;
constexpr std::uint64_t front_magic = 0x0a474f4c4159414dULL;  // "MAYALOG\n"
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;  // of an entry
constexpr std::uint64_t most_zeros = std::uint64_t{1} << 20;  // a header alone asks for no more
constexpr std::uint64_t tell_every = 256;                     // collectives
constexpr std::uint64_t free_at_least = 4 << 20;              // bytes
constexpr std::uint64_t page = 4096;
constexpr std::size_t many_entries = 4096;

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

bool all_zeros(const char* data, std::uint64_t bytes) {
  return bytes == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes - 1) == 0);
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
  const Front front{front_magic, 0, sizeof(Front), 0};
  if (own_ >= 0 && pwrite(own_, &front, sizeof front, 0) != sizeof front) {
    ::close(own_);  // a full disk: peers learn nothing from this member
    own_ = -1;
  }
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
  const auto* payload = static_cast<const char*>(data);
  const bool zeros = payload != nullptr && bytes <= most_zeros && all_zeros(payload, bytes);
  const Known known = payload == nullptr ? Known::no : zeros ? Known::zeros : Known::yes;
  const std::uint64_t stored = known == Known::yes ? bytes : 0;
  std::vector<char> entry(sizeof(Header) + stored);
  const Header header{key, known == Known::no ? 0 : bytes, known, entry_magic};
  std::memcpy(entry.data(), &header, sizeof header);
  if (stored > 0) std::memcpy(entry.data() + sizeof header, payload, stored);
  // One write: a reader sees the entry whole or sees that it is not there yet.
  if (pwrite(own_, entry.data(), entry.size(), static_cast<off_t>(end_)) ==
      static_cast<ssize_t>(entry.size())) {
    const bool message = key >= first_message_key && key < first_agreement_key;
    kept_.push_back({key < first_message_key ? key
                     : message               ? ~std::uint64_t{0}
                                             : passed_ + 1,
                     end_});
    end_ += entry.size();
    if (end_ - freed_ >= free_at_least && end_ >= try_again_) free_read();
  }
  if (exchange_waits.tell != nullptr) exchange_waits.tell();
}

void Exchange::hold(std::uint64_t key) {
  std::lock_guard guard(mutex_);
  held_.insert(key);
}

void Exchange::drop(std::uint64_t key) {
  std::lock_guard guard(mutex_);
  if (const auto one = held_.find(key); one != held_.end()) held_.erase(one);
}

void Exchange::pass(std::uint64_t key) {
  std::lock_guard guard(mutex_);
  passed_ = std::max(passed_, key);
  if (own_ < 0 || passed_ - told_ < tell_every) return;
  told_ = passed_;
  const std::uint64_t first = needed();
  if (pwrite(own_, &first, sizeof first, offsetof(Front, needed)) != sizeof first) return;
  for (Peer& peer : peers_)
    if (peer.entries.size() > many_entries) forget_passed(peer);
}

std::uint64_t Exchange::needed() const {
  return held_.empty() ? passed_ + 1 : std::min(*held_.begin(), passed_ + 1);
}

void Exchange::forget_passed(Peer& peer) {
  const std::uint64_t first = needed();
  std::erase_if(peer.entries, [&](const auto& entry) { return entry.first < first; });
}

// Gives the disk back what no member will read. An absent member is answered for with this one's
// own entries, the old ones too.
void Exchange::free_read() {
  try_again_ = end_ + free_at_least;
  std::uint64_t first = needed();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    Front front{};
    if (peer.absent || !open(peer, rank) ||
        pread(peer.file, &front, sizeof front, 0) != sizeof front || front.magic != front_magic)
      return;
    first = std::min(first, front.needed);
  }
  while (!kept_.empty() && kept_.front().read_before < first) kept_.pop_front();
  const std::uint64_t start = kept_.empty() ? end_ : kept_.front().position;
  if (start - freed_ < free_at_least) return;
  // First what readers look at, then the hole.
  if (pwrite(own_, &start, sizeof start, offsetof(Front, start)) != sizeof start) return;
  const std::uint64_t begin = (freed_ + page - 1) / page * page, end = start / page * page;
  freed_ = start;
  if (end > begin)
    fallocate(own_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
}

bool Exchange::open(Peer& peer, int rank) {
  if (peer.file < 0) peer.file = ::open(path(rank).c_str(), O_RDONLY | O_CLOEXEC);
  return peer.file >= 0;
}

// Moves on to the first entry that is still there. False: it is there already.
bool Exchange::skip_freed(Peer& peer) {
  Front front{};
  if (pread(peer.file, &front, sizeof front, 0) != sizeof front || front.magic != front_magic ||
      front.start <= peer.position)
    return false;
  peer.position = front.start;
  return true;
}

bool Exchange::advance(Peer& peer, int rank) {
  if (!open(peer, rank)) return false;
  bool any = false;
  skip_freed(peer);
  for (;;) {
    Header header;
    if (pread(peer.file, &header, sizeof header, static_cast<off_t>(peer.position)) !=
        sizeof header)
      return any;
    if (header.magic != entry_magic) {
      if (skip_freed(peer)) continue;  // it was freed just now
      return any;
    }
    struct stat info {};
    const std::uint64_t begin = peer.position + sizeof header;
    const std::uint64_t stored = header.known == Known::yes ? header.bytes : 0;
    if (header.known > Known::zeros || fstat(peer.file, &info) != 0 ||
        header.bytes > (header.known == Known::zeros ? most_zeros : most_bytes) ||
        static_cast<std::uint64_t>(info.st_size) < begin + stored)
      return any;
    peer.entries[header.key] = {begin, header.bytes, header.known};
    peer.position = begin + stored;
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
        entry.known = it->second.known != Known::no;
        entry.data.resize(entry.known ? it->second.bytes : 0);
        if (it->second.known == Known::yes && !entry.data.empty() &&
            pread(peer.file, entry.data.data(), entry.data.size(),
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
