#include "shim/nccl/communicator.h"

#include "shim/nccl/buffers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "session/absence.h"
#include "session/host_clock.h"
#include "shim/nccl/python_groups.h"

using namespace maya;
using namespace maya::abi;

namespace maya::nccl {

device::Slab<Communicator, 1 << 14>& communicators() {
  static auto* slab = new device::Slab<Communicator, 1 << 14>;
  return *slab;
}

Group& group() {
  static thread_local Group g;
  return g;
}

namespace {
// Keys below this are for joining and splitting.
constexpr std::uint64_t join_key = ~std::uint64_t{0};
}  // namespace

Communicator* announce(std::uint64_t id, int rank, int size, std::uint64_t parent,
                       const std::string& name, bool names_rank, std::vector<int> ranks) {
  auto& s = session::state();
  Communicator* made = communicators().create();
  if (made == nullptr) return nullptr;
  made->id = id, made->rank = rank, made->size = size, made->name = name;
  made->device = session::thread().device;
  std::shared_ptr<values::Exchange> exchange;
  if (size > 1 && !s.settings.run_directory.empty())
    exchange =
        std::make_shared<values::Exchange>(s.settings.run_directory + "/exchange", id, rank, size);
  made->member = values::Member(id, rank, size, exchange);
  made->names_rank = parent == 0 && names_rank;
  made->ranks = std::move(ranks);
  made->number =
      s.recorder.communicator(trace::Communicator{id, rank, size, parent, name, made->ranks});
  s.recorder.record(trace::Kind::communicator_create, 0, made->number);
  if (exchange) exchange->post(join_key, &rank, sizeof rank);
  return made;
}

// A process with several members (JAX has one for each of its GPUs) is not one of the ranks they
// count.
static void learn_rank(const Communicator& c) {
  bool only_member = c.names_rank;
  communicators().each(
      [&](const Communicator& other) { only_member &= &other == &c || other.id != c.id; });
  if (only_member) session::state().recorder.learn_rank(c.rank, c.size);
}

// Which members of a job that runs in part do not run. Those of the communicator of all ranks are
// known; those of another show by not appearing, for NCCL is not told which ranks its members are.
static void find_absent(Communicator& c) {
  const auto& ranks = session::ranks_that_run();
  const auto& settings = session::state().settings;
  constexpr double grace_seconds = 15;
  if (ranks.empty()) return;
  const bool whole = c.size == settings.world_size && c.rank == settings.rank;
  if (!whole && c.ranks.empty()) return c.member.exchange()->await_appearance(grace_seconds);
  for (int place = 0; place < c.size; ++place) {
    const int rank = whole ? place : c.ranks[static_cast<std::size_t>(place)];
    if (!std::binary_search(ranks.begin(), ranks.end(), rank))
      c.member.exchange()->declare_absent(place);
  }
}

bool await_members(Communicator& c) {
  if (c.member.exchange() == nullptr) return true;
  find_absent(c);
  for (int peer = 0; peer < c.size; ++peer)
    if (!c.member.exchange()->await(peer, join_key, values::peer_patience()).arrived) {
      std::fprintf(
          stderr,
          "maya: rank %d of communicator %016llx (%d ranks) never joined; rank %d waited %.0f s\n",
          peer, static_cast<unsigned long long>(c.id), c.size, c.rank, values::peer_patience());
      return false;
    }
  learn_rank(c);
  session::host_clock().reanchor();  // waiting for peers is not this rank's work
  return true;
}

namespace {

// Inside a group the members of several communicators join together at its end.
ncclResult_t join(void** out, Communicator* made) {
  if (made == nullptr) return ncclSystemError;
  *out = made;
  if (group().depth > 0) {
    group().joining.push_back(made);
    return ncclSuccess;
  }
  return await_members(*made) ? ncclSuccess : ncclRemoteError;
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
  const auto& settings = session::state().settings;
  std::vector<int> ranks;
  if (!session::ranks_that_run().empty() && size > 1 && size < settings.world_size)
    ranks = group_of(size, settings.rank, rank);
  return join(out, announce(id, rank, size, 0, config_name(config), true, std::move(ranks)));
}

// Place of a rank of the job in a communicator of a job that runs in part; -1 if it is no member.
int place_in(const Communicator& c, int rank) {
  if (c.size == session::state().settings.world_size) return rank < c.size ? rank : -1;
  const auto found = std::find(c.ranks.begin(), c.ranks.end(), rank);
  return found == c.ranks.end() ? -1 : static_cast<int>(found - c.ranks.begin());
}

struct Choice {
  int colour, key;
};

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
  std::seed_seq seed{static_cast<unsigned>(session::state().settings.rank), ++made};
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
  int before = session::thread().device;
  for (int i = 0; i < count; ++i) {
    session::thread().device = devices != nullptr ? devices[i] : i;
    // All members are GPUs of this process: they say nothing of its rank among others.
    out[i] = nccl::announce(base::identity(&id, sizeof id), i, count, 0, "", false);
  }
  session::thread().device = before;
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(void* handle, int colour, int key, void** out, ncclConfig_t* config) {
  session::Call call;
  Communicator* parent = find(handle);
  if (parent == nullptr || out == nullptr || (colour < 0 && colour != NCCL_SPLIT_NOCOLOR))
    return ncclInvalidArgument;
  std::uint64_t number = ++parent->splits;
  std::vector<std::pair<nccl::Choice, int>> members;
  std::vector<int> ranks;  // of the job, where only some of them run
  nccl::Choice own{colour, key};
  const bool partly =
      parent->member.exchange() != nullptr && parent->member.exchange()->absent() > 0;
  if (partly && colour != NCCL_SPLIT_NOCOLOR) {
    // The key is the place in the group for torch, whose lists this finds.
    ranks = nccl::group_being_made(session::state().settings.rank, key);
    for (int rank : ranks)
      if (const int at = nccl::place_in(*parent, rank); at >= 0) members.emplace_back(own, at);
    if (members.size() != ranks.size()) members.clear();
    if (members.empty()) {
      std::fprintf(
          stderr,
          "maya: a communicator of %d ranks is split by colour %d and %d of them do not run: "
          "nobody "
          "says which groups they join. Run with --ranks all, or create the groups without "
          "init_process_group(device_id=...)\n",
          parent->size, colour, parent->member.exchange()->absent());
      return ncclInvalidUsage;
    }
  }
  if (parent->member.exchange() != nullptr && !partly) {
    std::uint64_t exchange_key = (std::uint64_t{1} << 62) | number;
    parent->member.exchange()->post(exchange_key, &own, sizeof own);
    auto entries = parent->member.exchange()->gather(exchange_key, values::peer_patience());
    for (int rank = 0; rank < parent->size; ++rank) {
      const auto& entry = entries[static_cast<std::size_t>(rank)];
      nccl::Choice choice{};
      if (!entry.arrived || entry.data.size() != sizeof choice) return ncclRemoteError;
      std::memcpy(&choice, entry.data.data(), sizeof choice);
      if (choice.colour == colour) members.emplace_back(choice, rank);
    }
    session::host_clock().reanchor();
  } else if (!partly) {
    members.emplace_back(own, parent->rank);
  }
  *out = nullptr;
  if (colour == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  if (!partly)
    std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return a.first.key != b.first.key ? a.first.key < b.first.key : a.second < b.second;
    });
  int rank = 0;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].second == parent->rank) rank = static_cast<int>(i);
  std::uint64_t seed[3] = {parent->id, number, static_cast<std::uint64_t>(colour)};
  Communicator* made =
      nccl::announce(base::identity(seed, sizeof seed), rank, static_cast<int>(members.size()),
                     parent->id, nccl::config_name(config), false, std::move(ranks));
  return nccl::join(out, made);
}

// The members that stay, in order; the excluded ones do not call.
ncclResult_t ncclCommShrink(void* handle, int* excluded, int count, void** out,
                            ncclConfig_t* config, int) {
  session::Call call;
  Communicator* parent = find(handle);
  if (parent == nullptr || out == nullptr || excluded == nullptr || count < 1)
    return ncclInvalidArgument;
  std::vector<int> left;
  for (int rank = 0; rank < parent->size; ++rank)
    if (std::find(excluded, excluded + count, rank) == excluded + count) left.push_back(rank);
  auto own = std::find(left.begin(), left.end(), parent->rank);
  if (own == left.end()) return ncclInvalidArgument;
  std::uint64_t seed[3] = {parent->id, ++parent->splits, 0x5112};
  std::string name = nccl::config_name(config);
  return nccl::join(
      out, nccl::announce(base::identity(seed, sizeof seed), static_cast<int>(own - left.begin()),
                          static_cast<int>(left.size()), parent->id, name));
}

ncclResult_t ncclCommGetUniqueId(void* handle, ncclUniqueId* id) {
  return find(handle) ? ncclGetUniqueId(id) : ncclInvalidArgument;
}
ncclResult_t ncclCommGrow(void* handle, int size, const ncclUniqueId* id, int rank, void** out,
                          ncclConfig_t* config) {
  if (id == nullptr) return ncclInvalidArgument;
  if (Communicator* parent = find(handle); parent != nullptr && rank < 0) rank = parent->rank;
  return nccl::init(out, size, base::identity(id, sizeof *id), rank, config);
}

ncclResult_t ncclCommFinalize(void* handle) {
  return find(handle) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommDestroy(void* handle) {
  session::Call call;
  Communicator* c = find(handle);
  if (c == nullptr) return ncclInvalidArgument;
  session::state().recorder.record(trace::Kind::communicator_destroy, 0, c->number);
  nccl::disconnect(*c);
  nccl::communicators().destroy(handle);
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
  *count = c->size;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(void* handle, int* device) {
  Communicator* c = find(handle);
  if (c == nullptr || device == nullptr) return ncclInvalidArgument;
  *device = c->device;
  return ncclSuccess;
}
// What follows the known members says which device-side functions there are: none.
ncclResult_t ncclCommQueryProperties(void* handle, ncclCommProperties_t* p) {
  Communicator* c = find(handle);
  if (c == nullptr || p == nullptr || p->size < sizeof *p || p->size > 4096)
    return ncclInvalidArgument;
  std::memset(static_cast<void*>(&p->rank), 0, p->size - offsetof(ncclCommProperties_t, rank));
  p->rank = c->rank, p->nRanks = c->size, p->cudaDev = p->nvmlDev = c->device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(void* handle, int* rank) {
  Communicator* c = find(handle);
  if (c == nullptr || rank == nullptr) return ncclInvalidArgument;
  *rank = c->rank;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  session::Call call;
  return session::allocate(address, bytes, device::MemoryKind::device) == 0
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
  ++nccl::group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  session::Call call;
  auto& g = nccl::group();
  if (g.depth == 0) return ncclInvalidUsage;
  if (--g.depth > 0) return ncclSuccess;
  if (g.announced) session::state().recorder.record(trace::Kind::group_end, 0, 0);
  g.announced = false;
  g.sent_as_root = nullptr;
  std::vector<Communicator*> joining = std::move(g.joining);
  g.joining.clear();
  for (Communicator* c : joining)
    if (!nccl::await_members(*c)) return ncclRemoteError;
  return ncclSuccess;
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (info != nullptr) info->estimatedTime = 0;
  return ncclGroupEnd();
}

}  // extern "C"
