// Small payloads between the processes of a job, for communicators.
//
// All ranks that run do so on this machine, under one run directory. Each member of a communicator
// appends what it contributes to a log of its own; the others read it when somebody looks at the
// result. So nobody waits at the call itself, as nobody does on a stream.
//
//   DIR/<id>-<rank>   a front, then entries: key, bytes, what is known, payload
//
// A key is chosen by the caller so that both sides know it (sequence number of the collective, or
// of the message between two ranks).
//
// Jobs run for millions of steps, so a log does not keep what nobody will read. Each member tells
// in its front from which collective on it may still look at results; a writer frees the part of
// its log that lies before that of all members. A payload of zeros takes no room.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace maya::values {

// How a process waits for what another one writes. Where time is virtual the session sets these, so
// that whoever is written to is awake before the writer sleeps; else files are looked at again and
// again.
struct ExchangeWaits {
  std::uint32_t (*news)(){};                       // asked before looking
  void (*await)(std::uint32_t seen, int round){};  // then this
  void (*awaited)(){};                             // after all rounds
  void (*tell)(){};                                // something was written
};
extern ExchangeWaits exchange_waits;

// Keys below are of collectives and are counted up by every member alike. Then come those of
// messages, whose readers do not tell what they have read. Beyond are agreements, which every
// member awaits before it goes on to its next collective.
inline constexpr std::uint64_t first_message_key = std::uint64_t{1} << 61;
inline constexpr std::uint64_t first_agreement_key = std::uint64_t{1} << 62;

class Exchange {
 public:
  Exchange(std::string directory, std::uint64_t id, int rank, int size);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool usable() const { return own_ >= 0; }
  // data null: the bytes are not known, which the peers must learn too.
  void post(std::uint64_t key, const void* data, std::uint64_t bytes);

  struct Entry {
    bool arrived{}, known{};
    std::vector<char> data;
  };
  // Waits for a peer's entry; gives up when `abandoned` says so or after `seconds`.
  Entry await(int peer, std::uint64_t key, double seconds);
  // Every member's entry, in order of rank.
  std::vector<Entry> gather(std::uint64_t key, double seconds);

  // This member may look at the results of a collective (hold) until it says that it will not
  // (drop), and has come to the collective with this key (pass).
  void hold(std::uint64_t key);
  void drop(std::uint64_t key);
  void pass(std::uint64_t key);

  // For jobs of which only some ranks run. A member that does not is answered for with this one's
  // own entries; what this one did not say is then not known.
  void declare_absent(int rank);
  // Waits until every member has appeared, at most so long; the others are absent.
  void await_appearance(double seconds);
  int absent() const;  // how many
  bool is_absent(int rank) const;

 private:
  enum class Known : std::uint32_t { no, yes, zeros };
  struct Header {
    std::uint64_t key, bytes;
    Known known;
    std::uint32_t magic;
  };
  struct Front {
    std::uint64_t magic;
    std::uint64_t needed;  // the first collective that this member may still look at
    std::uint64_t start;   // where the entries begin that are still there
    std::uint64_t reserved;
  };
  struct Peer {
    int file = -1;
    bool absent = false;
    std::uint64_t position = sizeof(Front);
    struct Place {
      std::uint64_t position, bytes;
      Known known;
    };
    std::unordered_map<std::uint64_t, Place> entries;
  };
  std::string path(int rank) const;
  bool open(Peer& peer, int rank);
  bool advance(Peer& peer, int rank);
  bool skip_freed(Peer& peer);
  std::uint64_t needed() const;
  void forget_passed(Peer& peer);
  void free_read();

  std::string directory_;
  std::uint64_t id_;
  int rank_, size_;
  int own_ = -1;
  std::uint64_t end_ = sizeof(Front);
  std::uint64_t passed_ = 0, told_ = 0;  // the collective this member has come to; what peers know
  std::multiset<std::uint64_t> held_;
  // Entries of this member that are not freed yet: the first collective that a member has come to
  // which no longer reads them, and where they are.
  struct Own {
    std::uint64_t read_before, position;
  };
  std::deque<Own> kept_;
  std::uint64_t freed_ = sizeof(Front), try_again_ = 0;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;
};

// Keeps what the members say in one collective readable for this one.
class HeldEntry {
 public:
  HeldEntry(std::shared_ptr<Exchange> exchange, std::uint64_t key)
      : exchange_(std::move(exchange)), key_(key) {
    exchange_->hold(key_);
  }
  ~HeldEntry() {
    if (exchange_ != nullptr) exchange_->drop(key_);
  }
  HeldEntry(HeldEntry&&) = default;
  HeldEntry& operator=(HeldEntry&& other) noexcept {
    std::swap(exchange_, other.exchange_), std::swap(key_, other.key_);
    return *this;
  }

  Exchange& exchange() const { return *exchange_; }
  std::uint64_t key() const { return key_; }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::uint64_t key_;
};

}  // namespace maya::values
