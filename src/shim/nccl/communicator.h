// A communicator of the emulated NCCL: who belongs to it, and how its members exchange small
// values.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/nccl.h"
#include "device/slab.h"
#include "maya/trace.h"
#include "session/calls.h"
#include "shim/nccl/buffers.h"
#include "values/exchange.h"

namespace maya::nccl {

struct Communicator {
  std::uint64_t id{};
  int rank{}, size{1}, device{};
  std::uint16_t number{};  // in the recording
  std::shared_ptr<values::Exchange> exchange;
  std::uint64_t sequence{};  // of collectives whose values are exchanged
  // Per (from, to): how many.
  std::unordered_map<std::uint64_t, std::uint64_t> messages_sent, messages_received;
  std::uint64_t splits{};
  bool aborted{};
  bool names_rank{};  // its rank may be the process's
  std::string name;
  std::vector<int> ranks;  // of its members in the job, where known
  Buffers buffers;
};

device::Slab<Communicator, 1 << 14>& communicators();
inline Communicator* find(void* handle) { return communicators().find(handle); }

// Joins under the id: blocks until every member has joined, as NCCL does.
Communicator* announce(std::uint64_t id, int rank, int size, std::uint64_t parent,
                       const std::string& name, bool names_rank = true,
                       std::vector<int> ranks = {});
bool await_members(Communicator& communicator);

std::uint64_t hash(const void* data, std::size_t bytes, std::uint64_t seed = 0xcbf29ce484222325ULL);

// Largest payload whose value travels. Floats are gradients and weights, of which only small ones
// are looked at. Integers are indices, counts and pickled objects: they travel where they are
// known.
constexpr std::uint64_t value_limit(DType type) {
  const bool integer =
      type == DType::i8 || type == DType::u8 || type == DType::i32 || type == DType::i64;
  return std::uint64_t{1} << (integer ? 30 : 16);
}
double patience_seconds();

// What this process sends as a root in one group: the key of a broadcast, by communicator and size.
using SentAsRoot = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;

struct Group {
  int depth = 0;
  bool announced = false;
  std::vector<Communicator*> joining;
  std::shared_ptr<SentAsRoot> sent_as_root;  // null: none yet
};
Group& group();

}  // namespace maya::nccl
