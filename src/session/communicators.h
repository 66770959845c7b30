// Communicators: ranks of the job that communicate, as NCCL makes them.
//
// A communicator is recorded with its members. Collectives and messages become ops on a stream, and
// small payloads really travel between the processes (values/collectives.h).
#pragma once

#include <string>
#include <vector>

#include "session/session.h"

namespace maya::session {

// One process's membership in a communicator.
struct Membership {
  std::uint64_t id{};  // the same in all members
  int rank{}, size{1};
  std::uint64_t parent{};  // id of the communicator it was split from; 0: none
  std::string name;
  bool names_rank{};       // the member's rank may be the process's rank in the job
  std::vector<int> ranks;  // of the members in the job, where known
};

// A member on the current device. Announces it to the others and does not wait for them.
MAYA_EXPORT int communicator_create(Membership membership, void*& communicator);
// Waits until every member has joined: now, or at the end of the group that is open. not_ready: one
// never did, which was printed.
MAYA_EXPORT int communicator_join(void* communicator);
MAYA_EXPORT int communicator_destroy(void* communicator);
// Null if this is no communicator.
MAYA_EXPORT const Membership* membership(void* communicator);
MAYA_EXPORT int communicator_device(void* communicator);
// How many members do not run (`maya run --ranks`).
MAYA_EXPORT int communicator_absent(void* communicator);
// Every member contributes a few bytes and gets those of all, by rank; waits for them. All members
// give an exchange the same number. not_ready: a member did not answer.
MAYA_EXPORT int communicator_agree(void* communicator, std::uint64_t number,
                                   std::string_view contribution, std::vector<std::string>& all);

// Groups of calls, which nest: their ops are recorded as one, and communicators join at the end.
MAYA_EXPORT void group_begin();
// not_permitted: no group is open. not_ready: see communicator_join.
MAYA_EXPORT int group_end();

// A collective with more than one member, or the copy that it is for one. `name` is the library's
// function, a string literal.
struct CollectiveCall {
  CollectiveKind kind{};
  const void* send{};
  void* receive{};
  std::uint64_t send_bytes{}, receive_bytes{};
  DType dtype{};
  ReduceOp reduce{ReduceOp::sum};
  int root{-1};
};
MAYA_EXPORT int collective(void* communicator, const CollectiveCall& call, const char* name,
                           void* stream);
MAYA_EXPORT int message_send(void* communicator, const void* from, std::uint64_t bytes, DType dtype,
                             int peer, const char* name, void* stream);
MAYA_EXPORT int message_receive(void* communicator, void* to, std::uint64_t bytes, DType dtype,
                                int peer, const char* name, void* stream);

}  // namespace maya::session
