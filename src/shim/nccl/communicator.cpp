#include "shim/nccl/communicator.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "session/machine.h"
#include "shim/nccl/python_groups.h"

using namespace maya;
using namespace maya::abi;

namespace maya::nccl {
namespace {

// Null: too many communicators.
void* make(session::Membership membership) {
  void* handle = nullptr;
  if (session::communicator_create(std::move(membership), handle) != 0) return nullptr;
  return session::make_handle<Communicator>(handle);
}

// Inside a group the members of several communicators join together at its end.
ncclResult_t join(void** out, session::Membership membership) {
  void* made = make(std::move(membership));
  if (made == nullptr) return ncclSystemError;
  *out = made;
  return session::communicator_join(find(made)->handle) == 0 ? ncclSuccess : ncclRemoteError;
}

std::string config_name(const ncclConfig_t* config) {
  bool has_name =
      config != nullptr && config->size >= offsetof(ncclConfig_t, commName) + sizeof(char*);
  return has_name && config->commName != nullptr &&
                 config->commName != reinterpret_cast<const char*>(std::intptr_t{NCCL_UNDEF_INT})
             ? std::string(config->commName)
             : std::string();
}

ncclResult_t init(void** out, int size, std::uint64_t id, int rank, const ncclConfig_t* config) {
  session::Call call;
  if (out == nullptr || size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
  if (session::touch() != 0) return ncclUnhandledCudaError;
  // Where only some ranks run it matters who the members are.
  const session::JobPlace place = session::place_in_job();
  std::vector<int> ranks;
  if (!session::ranks_that_run().empty() && size > 1 && size < place.world_size)
    ranks = group_of(size, place.rank, rank);
  return join(out, {id, rank, size, 0, config_name(config), true, std::move(ranks)});
}

// Place of a rank of the job in a communicator of a job that runs in part; -1 if it is no member.
int place_in(const session::Membership& c, int rank) {
  if (c.size == session::place_in_job().world_size) return rank < c.size ? rank : -1;
  const auto found = std::find(c.ranks.begin(), c.ranks.end(), rank);
  return found == c.ranks.end() ? -1 : static_cast<int>(found - c.ranks.begin());
}

struct Choice {
  int colour, key;
};

// Ranks of the parent that choose the same colour, in the order of the new communicator. False: a
// peer did not answer.
bool members_by_colour(Communicator& parent, std::uint64_t number, Choice own,
                       std::vector<int>& members) {
  const session::Membership& m = parent.membership();
  std::vector<std::string> all;
  const std::string_view bytes(reinterpret_cast<const char*>(&own), sizeof own);
  const int error = session::communicator_agree(parent.handle, number, bytes, all);
  if (error == session::code::not_supported) return members = {m.rank}, true;  // one member
  if (error != 0) return false;
  std::vector<std::pair<int, int>> chosen;  // key, rank
  for (int rank = 0; rank < m.size; ++rank) {
    Choice choice{};
    std::memcpy(&choice, all[static_cast<std::size_t>(rank)].data(), sizeof choice);
    if (choice.colour == own.colour) chosen.emplace_back(choice.key, rank);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const auto& [key, rank] : chosen) members.push_back(rank);
  return true;
}

// The same where members do not run: torch knows which ranks it makes a group of. Empty: it does
// not say.
std::vector<int> members_by_torch(const session::Membership& parent,
                                  const std::vector<int>& ranks) {
  std::vector<int> members;
  for (int rank : ranks)
    if (const int place = place_in(parent, rank); place >= 0) members.push_back(place);
  if (members.size() != ranks.size()) members.clear();
  return members;
}

}  // namespace
}  // namespace maya::nccl

using nccl::Communicator;
using nccl::find;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  // torch compares with what it was built for only to choose features; the newest we describe
  // serves all.
  static int number = [] {
    const char* text = std::getenv("MAYA_NCCL_VERSION");
    return text != nullptr ? std::atoi(text) : 23007;
  }();
  *version = number;
  return ncclSuccess;
}

const char* ncclGetErrorString(int code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
const char* ncclGetLastError(void*) { return nccl::last_failure(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return ncclInvalidArgument;
  // A job of which only some ranks run may run in turns (`--at-once`): the n-th id a rank makes is
  // then the same in every turn, so that the recordings fit together.
  static std::atomic<unsigned> made{0};
  std::seed_seq seed{static_cast<unsigned>(session::place_in_job().rank), ++made};
  std::mt19937 repeated(seed);
  std::random_device random;
  for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i += 4) {
    unsigned word = session::ranks_that_run().empty() ? random() : repeated();
    std::memcpy(id->internal + i, &word, 4);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(void** out, int size, ncclUniqueId id, int rank) {
  return nccl::init(out, size, base::identity(&id, sizeof id), rank, nullptr);
}
ncclResult_t ncclCommInitRankConfig(void** out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return nccl::init(out, size, base::identity(&id, sizeof id), rank, config);
}
ncclResult_t ncclCommInitRankScalable(void** out, int size, int rank, int ids, ncclUniqueId* id,
                                      ncclConfig_t* config) {
  if (ids < 1 || id == nullptr) return ncclInvalidArgument;
  return nccl::init(out, size, base::identity(id, sizeof(ncclUniqueId)), rank, config);
}
// One process for all devices: its members need no exchange.
ncclResult_t ncclCommInitAll(void** out, int count, const int* devices) {
  session::Call call;
  if (out == nullptr || count < 1) return ncclInvalidArgument;
  if (session::touch() != 0) return ncclUnhandledCudaError;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const int before = session::current_device();
  for (int i = 0; i < count; ++i) {
    session::use_device(devices != nullptr ? devices[i] : i);
    // All members are GPUs of this process: they say nothing of its rank among others.
    out[i] = nccl::make({base::identity(&id, sizeof id), i, count, 0, "", false, {}});
  }
  session::use_device(before);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(void* handle, int colour, int key, void** out, ncclConfig_t* config) {
  session::Call call;
  Communicator* parent = find(handle);
  if (parent == nullptr || out == nullptr || (colour < 0 && colour != NCCL_SPLIT_NOCOLOR))
    return ncclInvalidArgument;
  const session::Membership& m = parent->membership();
  const std::uint64_t number = ++parent->splits;
  const int absent = session::communicator_absent(parent->handle);
  std::vector<int> members, ranks;  // of the parent; of the job, where only some of them run
  if (absent == 0) {
    if (!nccl::members_by_colour(*parent, number, {colour, key}, members)) return ncclRemoteError;
  } else if (colour != NCCL_SPLIT_NOCOLOR) {
    // The key is the place in the group for torch, whose lists this finds.
    ranks = nccl::group_being_made(session::place_in_job().rank, key);
    members = nccl::members_by_torch(m, ranks);
    if (members.empty()) {
      std::fprintf(
          stderr,
          "maya: a communicator of %d ranks is split by colour %d and %d of them do not run: "
          "nobody "
          "says which groups they join. Run with --ranks all, or create the groups without "
          "init_process_group(device_id=...)\n",
          m.size, colour, absent);
      return ncclInvalidUsage;
    }
  }
  *out = nullptr;
  if (colour == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  const auto own = std::find(members.begin(), members.end(), m.rank);
  const int rank = own == members.end() ? 0 : static_cast<int>(own - members.begin());
  const std::uint64_t seed[3] = {m.id, number, static_cast<std::uint64_t>(colour)};
  return nccl::join(out, {base::identity(seed, sizeof seed), rank, static_cast<int>(members.size()),
                          m.id, nccl::config_name(config), false, std::move(ranks)});
}

// The members that stay, in order; the excluded ones do not call.
ncclResult_t ncclCommShrink(void* handle, int* excluded, int count, void** out,
                            ncclConfig_t* config, int) {
  session::Call call;
  Communicator* parent = find(handle);
  if (parent == nullptr || out == nullptr || excluded == nullptr || count < 1)
    return ncclInvalidArgument;
  const session::Membership& m = parent->membership();
  std::vector<int> left;
  for (int rank = 0; rank < m.size; ++rank)
    if (std::find(excluded, excluded + count, rank) == excluded + count) left.push_back(rank);
  const auto own = std::find(left.begin(), left.end(), m.rank);
  if (own == left.end()) return ncclInvalidArgument;
  const std::uint64_t seed[3] = {m.id, ++parent->splits, 0x5112};
  return nccl::join(out, {base::identity(seed, sizeof seed),
                          static_cast<int>(own - left.begin()),
                          static_cast<int>(left.size()),
                          m.id,
                          nccl::config_name(config),
                          false,
                          {}});
}

ncclResult_t ncclCommGetUniqueId(void* handle, ncclUniqueId* id) {
  return find(handle) ? ncclGetUniqueId(id) : ncclInvalidArgument;
}
ncclResult_t ncclCommGrow(void* handle, int size, const ncclUniqueId* id, int rank, void** out,
                          ncclConfig_t* config) {
  if (id == nullptr) return ncclInvalidArgument;
  if (Communicator* parent = find(handle); parent != nullptr && rank < 0)
    rank = parent->membership().rank;
  return nccl::init(out, size, base::identity(id, sizeof *id), rank, config);
}

ncclResult_t ncclCommFinalize(void* handle) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommDestroy(void* handle) {
  session::Call call;
  Communicator* c = find(handle);
  if (c == nullptr) return ncclInvalidArgument;
  void* member = c->handle;
  const nccl::Buffers buffers = std::move(c->buffers);
  if (!session::drop_handle<Communicator>(handle)) return ncclInvalidArgument;
  session::communicator_destroy(member);
  nccl::release(buffers);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(void* handle) { return ncclCommDestroy(handle); }
ncclResult_t ncclCommRevoke(void* handle, int) {
  Communicator* c = find(handle);
  if (c == nullptr) return ncclInvalidArgument;
  c->aborted = true;
  return ncclSuccess;
}
ncclResult_t ncclCommSuspend(void* handle, int) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommResume(void* handle) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommMemStats(void* handle, int, std::uint64_t* value) {
  if (find(handle) == nullptr || value == nullptr) return ncclInvalidArgument;
  *value = 0;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(void* handle, int* error) {
  Communicator* c = find(handle);
  if (c == nullptr || error == nullptr) return ncclInvalidArgument;
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(void* handle, int* count) {
  Communicator* c = find(handle);
  if (c == nullptr || count == nullptr) return ncclInvalidArgument;
  *count = c->membership().size;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(void* handle, int* device) {
  Communicator* c = find(handle);
  if (c == nullptr || device == nullptr) return ncclInvalidArgument;
  *device = session::communicator_device(c->handle);
  return ncclSuccess;
}
// What follows the known members says which device-side functions there are: none.
ncclResult_t ncclCommQueryProperties(void* handle, ncclCommProperties_t* p) {
  Communicator* c = find(handle);
  if (c == nullptr || p == nullptr || p->size < sizeof *p || p->size > 4096)
    return ncclInvalidArgument;
  std::memset(static_cast<void*>(&p->rank), 0, p->size - offsetof(ncclCommProperties_t, rank));
  p->rank = c->membership().rank, p->nRanks = c->membership().size;
  p->cudaDev = p->nvmlDev = session::communicator_device(c->handle);
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(void* handle, int* rank) {
  Communicator* c = find(handle);
  if (c == nullptr || rank == nullptr) return ncclInvalidArgument;
  *rank = c->membership().rank;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  session::Call call;
  return session::allocate(address, bytes, session::MemoryKind::device) == 0
             ? ncclSuccess
             : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* address) {
  session::Call call;
  return session::release(address) == 0 ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(void* handle, void* buffer, std::size_t, void** registration) {
  if (find(handle) == nullptr || registration == nullptr) return ncclInvalidArgument;
  *registration = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(void* handle, void*) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommWindowRegister(void* handle, void* buffer, std::size_t, void** window, int) {
  if (find(handle) == nullptr || window == nullptr) return ncclInvalidArgument;
  *window = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(void* handle, void*) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclWinGetUserPtr(void* handle, void* window, void** address) {
  if (find(handle) == nullptr || address == nullptr) return ncclInvalidArgument;
  *address = window;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  session::group_begin();
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  session::Call call;
  const int error = session::group_end();
  if (error == session::code::not_permitted) return ncclInvalidUsage;
  return error == 0 ? ncclSuccess : ncclRemoteError;
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (info != nullptr) info->estimatedTime = 0;
  return ncclGroupEnd();
}

}  // extern "C"
