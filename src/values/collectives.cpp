#include "values/collectives.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "values/reduction.h"

namespace maya::values {
namespace {

// The pair of ranks of a message, in its direction.
std::uint64_t pair_of(int from, int to) {
  return static_cast<std::uint64_t>(from) << 24 | static_cast<std::uint64_t>(to);
}

// Of the n-th message between two ranks; apart from the keys of collectives, which are counted.
std::uint64_t message_key(int from, int to, std::uint64_t n) {
  const std::uint64_t seed[2] = {pair_of(from, to), n};
  return first_message_key | base::identity(seed, sizeof seed) >> 3;
}

bool copies(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::all_to_all;
}

// The result of a collective in one member's buffer, or in the part of it that one peer fills.
class Result : public KnownBytes::Pending {
 public:
  Result(std::shared_ptr<Exchange> exchange, std::uint64_t key)
      : entry_(std::move(exchange), key) {}

  CollectiveKind kind{};
  ReduceOp reduce{};
  DType dtype{};
  int rank{};
  int source{};  // whose data: root of a broadcast, peer of an all-gather or all-to-all
  // Of a broadcast whose root is absent: it sends what this member sends as a root in the same
  // group. Else the buffer keeps what it had.
  std::shared_ptr<SentAsRoot> sent_as_root;
  std::uint64_t communicator{};
  std::vector<char> before;

  bool resolve(void* to, std::uint64_t bytes) override {
    return copies(kind) ? resolve_copy(to, bytes) : resolve_reduction(to, bytes);
  }

 private:
  // 0: nobody sent it.
  std::uint64_t key_of_source(std::uint64_t bytes) const {
    if (kind != CollectiveKind::broadcast || !entry_.exchange().is_absent(source))
      return entry_.key();
    if (sent_as_root == nullptr) return 0;
    const auto found = sent_as_root->find({communicator, bytes});
    return found == sent_as_root->end() ? 0 : found->second;
  }

  bool resolve_copy(void* to, std::uint64_t bytes) {
    const std::uint64_t sent = key_of_source(bytes);
    if (sent == 0 && before.size() == bytes) {
      std::memcpy(to, before.data(), bytes);
      return true;
    }
    const auto entry = entry_.exchange().await(source, sent, peer_patience());
    const std::uint64_t offset =
        kind == CollectiveKind::all_to_all ? static_cast<std::uint64_t>(rank) * bytes : 0;
    if (!entry.known || entry.data.size() < offset + bytes) return false;
    std::memcpy(to, entry.data.data() + offset, bytes);
    return true;
  }

  bool resolve_reduction(void* to, std::uint64_t bytes) {
    if (reduce == ReduceOp::other || kind == CollectiveKind::gather ||
        kind == CollectiveKind::scatter)
      return false;
    const std::uint64_t offset =
        kind == CollectiveKind::reduce_scatter ? static_cast<std::uint64_t>(rank) * bytes : 0;
    std::vector<std::vector<char>> contributions;
    for (auto& entry : entry_.exchange().gather(entry_.key(), peer_patience())) {
      if (!entry.known || entry.data.size() < offset + bytes) return false;
      contributions.push_back(std::move(entry.data));
    }
    return reduce_contributions(dtype, reduce, contributions, offset, to, bytes);
  }

  HeldEntry entry_;
};

// A message from an absent rank is the one that this rank sent it in turn: members of an exchange
// with each other (tokens for experts) send as many as they are sent.
class Message : public KnownBytes::Pending {
 public:
  Message(std::shared_ptr<Exchange> exchange, std::uint64_t key, std::uint64_t answer, int from)
      : exchange_(std::move(exchange)), key_(key), answer_(answer), from_(from) {}
  bool resolve(void* to, std::uint64_t bytes) override {
    const std::uint64_t key = exchange_->is_absent(from_) ? answer_ : key_;
    const auto entry = exchange_->await(from_, key, peer_patience());
    if (!entry.known || entry.data.size() != bytes) return false;
    std::memcpy(to, entry.data.data(), bytes);
    return true;
  }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::uint64_t key_, answer_;
  int from_;
};

}  // namespace

double peer_patience() {
  static const double seconds = [] {
    const char* text = std::getenv("MAYA_PEER_TIMEOUT");
    return text != nullptr ? std::atof(text) : 600.0;
  }();
  return seconds;
}

// A buffer of which a part is known travels with zeros for the rest: objects are gathered in
// buffers that are as large as the largest of them.
bool Member::post(std::uint64_t key, std::uint64_t from, std::uint64_t bytes, KnownBytes& values) {
  if (!values.any_settled(from, bytes)) {
    exchange_->post(key, nullptr, bytes);
    return false;
  }
  std::vector<char> data(bytes);
  values.load(data.data(), from, bytes);
  exchange_->post(key, data.data(), bytes);
  return true;
}

std::uint64_t Member::collective(const Exchanged& call, KnownBytes& values,
                                 const std::shared_ptr<SentAsRoot>& group) {
  const bool root_only = call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::gather;
  const bool receives =
      call.receive != 0 && call.receive_bytes > 0 && (!root_only || call.root == rank_);
  if (size_ == 1 || !exchange_) {
    if (receives && call.send != 0)
      values.copy(call.receive, call.send, std::min(call.send_bytes, call.receive_bytes));
    return 0;
  }
  if (std::max(call.send_bytes, call.receive_bytes) > travel_limit(call.dtype)) {
    if (receives) values.forget(call.receive, call.receive_bytes);
    return 0;
  }
  exchange_->pass(sequence_);  // whoever waits for the one before has held it by now
  const std::uint64_t key = ++sequence_;
  const std::uint64_t of_all = call.kind == CollectiveKind::broadcast ? 0 : key;
  if (call.kind != CollectiveKind::broadcast || call.root == rank_) {
    const bool known = post(key, call.send, call.send_bytes, values);
    // Masks of weights are as large as the weights. A member that knows nothing of its own part
    // does not look at those of the others.
    if (!known && receives && call.kind != CollectiveKind::broadcast &&
        call.receive_bytes > looked_at_unknown) {
      values.forget(call.receive, call.receive_bytes);
      return of_all;
    }
    if (call.kind == CollectiveKind::broadcast && group != nullptr)
      (*group)[{communicator_, call.send_bytes}] = key;
  }
  if (!receives) return of_all;
  auto promise = [&](std::uint64_t offset, std::uint64_t bytes, int source) {
    auto result = std::make_shared<Result>(exchange_, key);
    result->kind = call.kind;
    result->reduce = call.reduce, result->dtype = call.dtype;
    result->rank = rank_, result->source = source;
    if (call.kind == CollectiveKind::broadcast && exchange_->is_absent(source)) {
      result->communicator = communicator_;
      result->sent_as_root = group;
      if (values.any(call.receive, bytes)) {
        result->before.resize(bytes);
        values.load(result->before.data(), call.receive, bytes);
      }
    }
    values.promise(call.receive + offset, bytes, result);
  };
  if (call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::all_to_all ||
      call.kind == CollectiveKind::gather) {
    const std::uint64_t chunk = call.receive_bytes / static_cast<std::uint64_t>(size_);
    for (int rank = 0; rank < size_; ++rank)
      promise(static_cast<std::uint64_t>(rank) * chunk, chunk, rank);
  } else if (call.kind != CollectiveKind::broadcast || call.root != rank_ ||
             call.send != call.receive) {
    promise(0, call.receive_bytes, call.root);
  }
  return of_all;
}

void Member::send(std::uint64_t from, std::uint64_t bytes, DType dtype, int peer,
                  KnownBytes& values) {
  if (!exchange_ || bytes > travel_limit(dtype)) return;
  post(message_key(rank_, peer, ++sent_[pair_of(rank_, peer)]), from, bytes, values);
}

void Member::receive(std::uint64_t to, std::uint64_t bytes, DType dtype, int peer,
                     KnownBytes& values) {
  if (!exchange_ || bytes > travel_limit(dtype)) return values.forget(to, bytes);
  const std::uint64_t number = ++received_[pair_of(peer, rank_)];
  values.promise(to, bytes,
                 std::make_shared<Message>(exchange_, message_key(peer, rank_, number),
                                           message_key(rank_, peer, number), peer));
}

}  // namespace maya::values
