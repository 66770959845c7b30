// What collectives and messages between ranks do to values.
//
// Small payloads really travel: programs gather objects, agree on shapes and count tokens with
// collectives, and read the result. Each member posts what it knows of its contribution
// (exchange.h) and promises its own buffer the result (known_bytes.h), which is worked out when
// somebody looks. Nobody waits at the call itself. What is larger becomes unknown.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "maya/op.h"
#include "values/exchange.h"
#include "values/known_bytes.h"

namespace maya::values {

// What one member is asked to do. Addresses are of device memory; 0: this member has no such
// buffer.
struct Exchanged {
  CollectiveKind kind{};
  std::uint64_t send{}, receive{};
  std::uint64_t send_bytes{}, receive_bytes{};
  DType dtype{};
  ReduceOp reduce{ReduceOp::sum};
  int root{-1};
};

// What this process sends as a root in one group of calls: the key of a broadcast, by communicator
// and size. An all-gather may be written as a group of broadcasts, one from each member.
using SentAsRoot = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;

// Largest payload whose value travels. Floats are gradients and weights, of which only small ones
// are looked at. Integers are indices, counts and pickled objects: they travel where they are
// known.
constexpr std::uint64_t travel_limit(DType type) {
  const bool integer =
      type == DType::i8 || type == DType::u8 || type == DType::i32 || type == DType::i64;
  return std::uint64_t{1} << (integer ? 30 : 16);
}

// Largest result that is worked out for a member whose own contribution is unknown.
constexpr std::uint64_t looked_at_unknown = 1 << 20;

// How many seconds to wait for another rank's values (MAYA_PEER_TIMEOUT).
double peer_patience();

// One process's end of a communicator.
class Member {
 public:
  Member() = default;
  // Without an exchange (one member, or nothing is recorded) nothing travels.
  Member(std::uint64_t communicator, int rank, int size, std::shared_ptr<Exchange> exchange)
      : communicator_(communicator), rank_(rank), size_(size), exchange_(std::move(exchange)) {}

  // `group`: the group of calls this one belongs to, null outside of groups. Returns the key under
  // which every member posts something; 0: not every one does, or nothing travels.
  std::uint64_t collective(const Exchanged& call, KnownBytes& values,
                           const std::shared_ptr<SentAsRoot>& group);
  void send(std::uint64_t from, std::uint64_t bytes, DType dtype, int peer, KnownBytes& values);
  void receive(std::uint64_t to, std::uint64_t bytes, DType dtype, int peer, KnownBytes& values);

  const std::shared_ptr<Exchange>& exchange() const { return exchange_; }

 private:
  // Whether any of it was known.
  bool post(std::uint64_t key, std::uint64_t from, std::uint64_t bytes, KnownBytes& values);

  std::uint64_t communicator_{};
  int rank_{}, size_{1};
  std::shared_ptr<Exchange> exchange_;
  std::uint64_t sequence_{};  // of collectives whose values travel
  // Messages so far, by pair of ranks. Both ends count; a rank that sends to itself is both.
  std::unordered_map<std::uint64_t, std::uint64_t> sent_, received_;
};

}  // namespace maya::values
