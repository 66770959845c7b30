#include "session/communicators.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "session/calls.h"
#include "session/host_clock.h"
#include "session/machine.h"
#include "session/meetings.h"
#include "values/collectives.h"

namespace maya::session {
namespace {

struct Communicator {
  Membership membership;
  int device{};
  std::uint16_t number{};  // in the recording
  maya::values::Member member;
};

device::Slab<Communicator, 1 << 14>& communicators() {
  static auto* slab = new device::Slab<Communicator, 1 << 14>;
  return *slab;
}

Communicator* find(void* handle) { return communicators().find(handle); }

// Keys of the exchange, apart from those of collectives, which are counted, and of messages.
constexpr std::uint64_t join_key = ~std::uint64_t{0};
constexpr std::uint64_t agree_key = std::uint64_t{1} << 62;

// The calling thread's open groups.
struct Group {
  int depth{};
  bool recorded{};
  std::vector<Communicator*> joining;
  std::shared_ptr<maya::values::SentAsRoot> sent_as_root;  // null: nothing yet
};
Group& group() {
  static thread_local Group g;
  return g;
}

std::shared_ptr<maya::values::SentAsRoot> sent_in_group() {
  Group& g = group();
  if (g.depth == 0) return nullptr;
  if (g.sent_as_root == nullptr) g.sent_as_root = std::make_shared<maya::values::SentAsRoot>();
  return g.sent_as_root;
}

// A group without ops is not recorded.
void record_group() {
  Group& g = group();
  if (g.depth == 0 || g.recorded) return;
  g.recorded = true;
  state().recorder.record(trace::Kind::group_begin, 0, 0);
}

// A process with several members (JAX has one for each of its GPUs) is not one of the ranks they
// count.
void learn_rank(const Communicator& c) {
  const Membership& m = c.membership;
  bool only_member = m.names_rank;
  communicators().each([&](const Communicator& other) {
    only_member &= &other == &c || other.membership.id != m.id;
  });
  if (only_member) state().recorder.learn_rank(m.rank, m.size);
}

// Which members of a job that runs in part do not run. Those of the communicator of all ranks are
// known; those of another show by not appearing, for NCCL is not told which ranks its members are.
void find_absent(Communicator& c) {
  const auto& running = ranks_that_run();
  const Membership& m = c.membership;
  const JobPlace place = place_in_job();
  constexpr double grace_seconds = 15;
  if (running.empty()) return;
  const bool whole = m.size == place.world_size && m.rank == place.rank;
  if (!whole && m.ranks.empty()) return c.member.exchange()->await_appearance(grace_seconds);
  for (int member = 0; member < m.size; ++member) {
    const int rank = whole ? member : m.ranks[static_cast<std::size_t>(member)];
    if (!std::binary_search(running.begin(), running.end(), rank))
      c.member.exchange()->declare_absent(member);
  }
}

int await_members(Communicator& c) {
  if (c.member.exchange() == nullptr) return code::success;
  const Membership& m = c.membership;
  const double patience = maya::values::peer_patience();
  find_absent(c);
  for (int peer = 0; peer < m.size; ++peer)
    if (!c.member.exchange()->await(peer, join_key, patience).arrived) {
      std::fprintf(
          stderr,
          "maya: rank %d of communicator %016llx (%d ranks) never joined; rank %d waited %.0f s\n",
          peer, static_cast<unsigned long long>(m.id), m.size, m.rank, patience);
      return code::not_ready;
    }
  learn_rank(c);
  host_clock().reanchor();  // waiting for peers is not this rank's work
  return code::success;
}

std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

int message(void* handle, const PointToPoint& op, DType dtype, std::uint64_t buffer,
            const char* name, void* stream_handle) {
  Communicator* c = find(handle);
  Stream* stream = nullptr;
  if (c == nullptr) return code::invalid_handle;
  if (int error = find_stream(stream_handle, stream)) return error;
  record_group();
  State& s = state();
  if (int error =
          enqueue(*stream, trace::Kind::point_to_point, s.recorder.op(op, name), 0, c->number))
    return error;
  if (stream->capture != nullptr) return code::success;
  const auto bytes = static_cast<std::uint64_t>(op.bytes);
  if (op.send)
    c->member.send(buffer, bytes, dtype, op.peer, s.values);
  else
    c->member.receive(buffer, bytes, dtype, op.peer, s.values);
  return code::success;
}

}  // namespace

int communicator_create(Membership m, void*& communicator) {
  State& s = state();
  Communicator* made = communicators().create();
  if (made == nullptr) return code::out_of_memory;
  std::shared_ptr<maya::values::Exchange> exchange;
  if (m.size > 1 && !s.settings.run_directory.empty())
    exchange = std::make_shared<maya::values::Exchange>(s.settings.run_directory + "/exchange",
                                                        m.id, m.rank, m.size);
  made->device = thread().device;
  made->member = maya::values::Member(m.id, m.rank, m.size, exchange);
  made->number = s.recorder.communicator({m.id, m.rank, m.size, m.parent, m.name, m.ranks});
  s.recorder.record(trace::Kind::communicator_create, 0, made->number);
  if (exchange) exchange->post(join_key, &m.rank, sizeof m.rank);
  made->membership = std::move(m);
  communicator = made;
  return code::success;
}

int communicator_join(void* handle) {
  Communicator* c = find(handle);
  if (c == nullptr) return code::invalid_handle;
  if (group().depth == 0) return await_members(*c);
  group().joining.push_back(c);
  return code::success;
}

int communicator_destroy(void* handle) {
  const Communicator* c = find(handle);
  if (c == nullptr) return code::invalid_handle;
  state().recorder.record(trace::Kind::communicator_destroy, 0, c->number);
  communicators().destroy(handle);
  return code::success;
}

const Membership* membership(void* handle) {
  const Communicator* c = find(handle);
  return c != nullptr ? &c->membership : nullptr;
}

int communicator_device(void* handle) {
  const Communicator* c = find(handle);
  return c != nullptr ? c->device : 0;
}

int communicator_absent(void* handle) {
  const Communicator* c = find(handle);
  return c != nullptr && c->member.exchange() != nullptr ? c->member.exchange()->absent() : 0;
}

int communicator_agree(void* handle, std::uint64_t number, std::string_view contribution,
                       std::vector<std::string>& all) {
  Communicator* c = find(handle);
  if (c == nullptr) return code::invalid_handle;
  maya::values::Exchange* exchange = c->member.exchange().get();
  if (exchange == nullptr) return code::not_supported;
  exchange->post(agree_key | number, contribution.data(), contribution.size());
  for (auto& entry : exchange->gather(agree_key | number, maya::values::peer_patience())) {
    if (!entry.arrived || entry.data.size() != contribution.size()) return code::not_ready;
    all.emplace_back(entry.data.begin(), entry.data.end());
  }
  host_clock().reanchor();
  return code::success;
}

void group_begin() { ++group().depth; }

int group_end() {
  Group& g = group();
  if (g.depth == 0) return code::not_permitted;
  if (--g.depth > 0) return code::success;
  if (g.recorded) state().recorder.record(trace::Kind::group_end, 0, 0);
  g.recorded = false;
  g.sent_as_root = nullptr;
  const std::vector<Communicator*> joining = std::move(g.joining);
  g.joining.clear();
  for (Communicator* c : joining)
    if (int error = await_members(*c)) return error;
  return code::success;
}

int collective(void* handle, const CollectiveCall& call, const char* name, void* stream_handle) {
  Communicator* c = find(handle);
  Stream* stream = nullptr;
  if (c == nullptr) return code::invalid_handle;
  if (int error = find_stream(stream_handle, stream)) return error;
  State& s = state();
  if (c->membership.size > 1 && call.send_bytes + call.receive_bytes > 0) {
    record_group();
    Collective op;
    op.kind = call.kind;
    op.bytes = static_cast<std::int64_t>(std::max(call.send_bytes, call.receive_bytes));
    op.dtype = call.dtype;
    op.reduce = call.reduce;
    op.root = call.root;
    if (int error =
            enqueue(*stream, trace::Kind::collective, s.recorder.op(op, name), 0, c->number))
      return error;
  } else if (call.send != call.receive && call.receive_bytes > 0) {
    const Area area{.to = call.receive,
                    .from = call.send,
                    .width = std::min(call.send_bytes, call.receive_bytes)};
    if (area.width > 0) copy(area, stream_handle, true);
  }
  if (stream->capture == nullptr) {
    const std::uint64_t key =
        c->member.collective({call.kind, address(call.send), address(call.receive), call.send_bytes,
                              call.receive_bytes, call.dtype, call.reduce, call.root},
                             s.values, sent_in_group());
    if (key != 0 && call.send_bytes <= Meetings::most_bytes)
      meetings().queued(*stream, c->member.exchange(), c->membership.size, key);
  }
  return code::success;
}

int message_send(void* communicator, const void* from, std::uint64_t bytes, DType dtype, int peer,
                 const char* name, void* stream) {
  return message(communicator, {true, static_cast<std::int64_t>(bytes), peer}, dtype, address(from),
                 name, stream);
}

int message_receive(void* communicator, void* to, std::uint64_t bytes, DType dtype, int peer,
                    const char* name, void* stream) {
  return message(communicator, {false, static_cast<std::int64_t>(bytes), peer}, dtype, address(to),
                 name, stream);
}

}  // namespace maya::session
