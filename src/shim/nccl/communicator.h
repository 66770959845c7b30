// A communicator of the emulated NCCL: who belongs to it, and how its members exchange small
// values.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "abi/nccl.h"
#include "device/slab.h"
#include "maya/trace.h"
#include "session/calls.h"
#include "shim/nccl/buffers.h"
#include "values/collectives.h"

namespace maya::nccl {

struct Communicator {
  std::uint64_t id{};
  int rank{}, size{1}, device{};
  std::uint16_t number{};  // in the recording
  values::Member member;
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

struct Group {
  int depth = 0;
  bool announced = false;
  std::vector<Communicator*> joining;
  std::shared_ptr<values::SentAsRoot> sent_as_root;  // null: none yet
};
Group& group();

}  // namespace maya::nccl
