// Small payloads between the processes of a job, for communicators.
//
// All ranks that run do so on this machine, under one run directory. Each member of a communicator
// appends what it contributes to a log of its own; the others read it when somebody looks at the
// result. So nobody waits at the call itself, as nobody does on a stream.
//
//   DIR/<id>-<rank>   entries: key, bytes, known, payload
//
// A key is chosen by the caller so that both sides know it (sequence number of the collective, or
// of the message between two ranks).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
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

  // For jobs of which only some ranks run. A member that does not is answered for with this one's
  // own entries; what this one did not say is then not known.
  void declare_absent(int rank);
  // Waits until every member has appeared, at most so long; the others are absent.
  void await_appearance(double seconds);
  int absent() const;  // how many
  bool is_absent(int rank) const;

 private:
  struct Header {
    std::uint64_t key, bytes;
    std::uint32_t known, magic;
  };
  struct Peer {
    int file = -1;
    bool absent = false;
    std::uint64_t position = 0;
    struct Place {
      std::uint64_t position, bytes;
      bool known;
    };
    std::unordered_map<std::uint64_t, Place> entries;
  };
  std::string path(int rank) const;
  bool advance(Peer& peer, int rank);

  std::string directory_;
  std::uint64_t id_;
  int rank_, size_;
  int own_ = -1;
  std::uint64_t end_ = 0;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;
};

}  // namespace maya::values
