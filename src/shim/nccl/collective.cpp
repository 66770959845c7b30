#include <algorithm>
#include <cstring>

#include "shim/nccl/communicator.h"

using namespace maya;
using namespace maya::abi;
using nccl::Communicator;

namespace {

struct Type {
  DType dtype;
  std::uint64_t bytes;
};

bool type_of(int type, Type& out) {
  static const Type types[] = {{DType::i8, 1},   {DType::u8, 1},     {DType::i32, 4},
                               {DType::i32, 4},  {DType::i64, 8},    {DType::i64, 8},
                               {DType::f16, 2},  {DType::f32, 4},    {DType::f64, 8},
                               {DType::bf16, 2}, {DType::f8e4m3, 1}, {DType::f8e5m2, 1}};
  if (type < 0 || type > 11) return false;
  out = types[type];
  return true;
}

ReduceOp reduce_of(int op) {
  switch (op) {
    case ncclSum:
      return ReduceOp::sum;
    case ncclProd:
      return ReduceOp::product;
    case ncclMax:
      return ReduceOp::max;
    case ncclMin:
      return ReduceOp::min;
    case ncclAvg:
      return ReduceOp::average;
    default:
      return ReduceOp::other;
  }
}

std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

template <class T>
void fold(const std::vector<std::vector<char>>& in, std::uint64_t offset, void* to,
          std::uint64_t bytes, ReduceOp op) {
  auto* out = static_cast<T*>(to);
  for (std::uint64_t i = 0; i < bytes / sizeof(T); ++i) {
    T sum{};
    for (std::size_t r = 0; r < in.size(); ++r) {
      T v;
      std::memcpy(&v, in[r].data() + offset + i * sizeof(T), sizeof v);
      if (r == 0)
        sum = v;
      else if (op == ReduceOp::product)
        sum = static_cast<T>(sum * v);
      else if (op == ReduceOp::max)
        sum = std::max(sum, v);
      else if (op == ReduceOp::min)
        sum = std::min(sum, v);
      else
        sum = static_cast<T>(sum + v);
    }
    if (op == ReduceOp::average) sum = static_cast<T>(sum / static_cast<T>(in.size()));
    out[i] = sum;
  }
}

bool fold_any(DType type, const std::vector<std::vector<char>>& in, std::uint64_t offset, void* to,
              std::uint64_t bytes, ReduceOp op) {
  switch (type) {
    case DType::i8:
      return fold<std::int8_t>(in, offset, to, bytes, op), true;
    case DType::u8:
      return fold<std::uint8_t>(in, offset, to, bytes, op), true;
    case DType::i32:
      return fold<std::int32_t>(in, offset, to, bytes, op), true;
    case DType::i64:
      return fold<std::int64_t>(in, offset, to, bytes, op), true;
    case DType::f32:
      return fold<float>(in, offset, to, bytes, op), true;
    case DType::f64:
      return fold<double>(in, offset, to, bytes, op), true;
    default:
      return false;
  }
}

// The result of a small collective, worked out when somebody looks at it.
class Result : public values::KnownBytes::Pending {
 public:
  std::shared_ptr<values::Exchange> exchange;
  std::uint64_t key{};
  CollectiveKind kind{};
  ReduceOp op{};
  DType type{};
  int rank{}, size{},
      source{};  // source: whose data (broadcast root, all-gather chunk, all-to-all peer)
  // Of a broadcast whose root is absent. An all-gather may be a group of broadcasts, one from each
  // member: then the absent one sends what this one sends in the same group. Else the buffer keeps
  // what it had.
  std::shared_ptr<nccl::SentAsRoot> sent_as_root;
  std::uint64_t communicator{};
  std::vector<char> before;

  std::uint64_t key_of_root(std::uint64_t bytes) const {
    if (kind != CollectiveKind::broadcast || !exchange->is_absent(source)) return key;
    if (sent_as_root == nullptr) return 0;
    const auto found = sent_as_root->find({communicator, bytes});
    return found == sent_as_root->end() ? 0 : found->second;
  }

  bool resolve(void* to, std::uint64_t bytes) override {
    if (kind == CollectiveKind::broadcast || kind == CollectiveKind::all_gather ||
        kind == CollectiveKind::all_to_all) {
      const std::uint64_t said = key_of_root(bytes);
      if (said == 0 && before.size() == bytes) {
        std::memcpy(to, before.data(), bytes);
        return true;
      }
      auto entry = exchange->await(source, said, nccl::patience_seconds());
      std::uint64_t offset =
          kind == CollectiveKind::all_to_all ? static_cast<std::uint64_t>(rank) * bytes : 0;
      if (!entry.known || entry.data.size() < offset + bytes) return false;
      std::memcpy(to, entry.data.data() + offset, bytes);
      return true;
    }
    if (op == ReduceOp::other || kind == CollectiveKind::gather || kind == CollectiveKind::scatter)
      return false;
    std::vector<std::vector<char>> in;
    std::uint64_t offset =
        kind == CollectiveKind::reduce_scatter ? static_cast<std::uint64_t>(rank) * bytes : 0;
    for (auto& entry : exchange->gather(key, nccl::patience_seconds())) {
      if (!entry.known || entry.data.size() < offset + bytes) return false;
      in.push_back(std::move(entry.data));
    }
    return fold_any(type, in, offset, to, bytes, op);
  }
};

class Message : public values::KnownBytes::Pending {
 public:
  std::shared_ptr<values::Exchange> exchange;
  std::uint64_t key{};
  int from{};
  bool resolve(void* to, std::uint64_t bytes) override {
    auto entry = exchange->await(from, key, nccl::patience_seconds());
    if (!entry.known || entry.data.size() != bytes) return false;
    std::memcpy(to, entry.data.data(), bytes);
    return true;
  }
};

void open_group() {
  auto& g = nccl::group();
  if (g.depth == 0 || g.announced) return;
  g.announced = true;
  session::state().recorder.record(trace::Kind::group_begin, 0, 0);
}

struct Request {
  CollectiveKind kind;
  const void* send;
  void* receive;
  std::uint64_t send_bytes, receive_bytes;
  int type;
  int op = ncclSum;
  int root = -1;
};

std::shared_ptr<nccl::SentAsRoot> sent_in_group() {
  auto& g = nccl::group();
  if (g.sent_as_root == nullptr) g.sent_as_root = std::make_shared<nccl::SentAsRoot>();
  return g.sent_as_root;
}

// A buffer of which a part is known travels with zeros for the rest: objects are gathered in
// buffers that are as large as the largest of them.
void post_known(Communicator& c, std::uint64_t key, const void* from, std::uint64_t bytes) {
  auto& values = session::state().values;
  if (!values.any(address(from), bytes)) return c.exchange->post(key, nullptr, bytes);
  std::vector<char> data(bytes);
  values.load(data.data(), address(from), bytes);
  c.exchange->post(key, data.data(), bytes);
}

// Values move for small payloads outside captures; what is larger becomes unknown.
void exchange_values(Communicator& c, const Request& q, const Type& type) {
  auto& values = session::state().values;
  bool root_only = q.kind == CollectiveKind::reduce || q.kind == CollectiveKind::gather;
  bool receives = q.receive != nullptr && q.receive_bytes > 0 && (!root_only || q.root == c.rank);
  std::uint64_t largest = std::max(q.send_bytes, q.receive_bytes);
  if (c.size == 1 || !c.exchange) {
    if (receives && q.send != nullptr)
      values.copy(address(q.receive), address(q.send), std::min(q.send_bytes, q.receive_bytes));
    return;
  }
  if (largest > nccl::value_limit(type.dtype)) {
    if (receives) values.forget(address(q.receive), q.receive_bytes);
    return;
  }
  std::uint64_t key = ++c.sequence;
  bool sends = q.kind != CollectiveKind::broadcast || q.root == c.rank;
  if (sends) {
    post_known(c, key, q.send, q.send_bytes);
    if (q.kind == CollectiveKind::broadcast && nccl::group().depth > 0)
      (*sent_in_group())[{c.id, q.send_bytes}] = key;
  }
  if (!receives) return;
  auto promise = [&](std::uint64_t offset, std::uint64_t bytes, int source) {
    auto result = std::make_shared<Result>();
    result->exchange = c.exchange, result->key = key, result->kind = q.kind,
    result->op = reduce_of(q.op);
    result->type = type.dtype, result->rank = c.rank, result->size = c.size,
    result->source = source;
    if (q.kind == CollectiveKind::broadcast && c.exchange->is_absent(source)) {
      result->communicator = c.id;
      if (nccl::group().depth > 0) result->sent_as_root = sent_in_group();
      if (values.any(address(q.receive), bytes)) {
        result->before.resize(bytes);
        values.load(result->before.data(), address(q.receive), bytes);
      }
    }
    values.promise(address(q.receive) + offset, bytes, result);
  };
  if (q.kind == CollectiveKind::all_gather || q.kind == CollectiveKind::all_to_all ||
      q.kind == CollectiveKind::gather) {
    std::uint64_t chunk = q.receive_bytes / static_cast<std::uint64_t>(c.size);
    for (int rank = 0; rank < c.size; ++rank)
      promise(static_cast<std::uint64_t>(rank) * chunk, chunk, rank);
  } else if (q.kind == CollectiveKind::broadcast) {
    if (q.root != c.rank || q.send != q.receive) promise(0, q.receive_bytes, q.root);
  } else {
    promise(0, q.receive_bytes, q.root);
  }
}

ncclResult_t run(void* handle, const Request& q, void* stream_handle, const char* name) {
  session::Call call;
  Communicator* c = nccl::find(handle);
  if (c == nullptr || c->aborted) return c == nullptr ? ncclInvalidArgument : ncclInvalidUsage;
  Type type{};
  if (!type_of(q.type, type) || q.root >= c->size) return ncclInvalidArgument;
  session::Stream* stream = nullptr;
  if (session::find_stream(stream_handle, stream) != 0) return ncclUnhandledCudaError;
  if (c->size > 1 && q.send_bytes + q.receive_bytes > 0) {
    if (!nccl::connect(*c, q.kind)) return ncclUnhandledCudaError;
    open_group();
    Collective op;
    op.kind = q.kind;
    op.bytes = static_cast<std::int64_t>(std::max(q.send_bytes, q.receive_bytes));
    op.dtype = type.dtype;
    op.reduce = reduce_of(q.op);
    op.root = q.root;
    std::uint32_t number = session::state().recorder.op(op, name);
    if (session::enqueue(*stream, trace::Kind::collective, number, 0, c->number) != 0)
      return ncclUnhandledCudaError;
  } else if (q.send != q.receive && q.receive_bytes > 0) {
    // One rank: NCCL copies.
    session::Area area{
        .to = q.receive, .from = q.send, .width = std::min(q.send_bytes, q.receive_bytes)};
    if (area.width > 0) session::copy(area, stream_handle, true);
  }
  if (stream->capture == nullptr) exchange_values(*c, q, type);
  return ncclSuccess;
}

ncclResult_t message(void* handle, void* buffer, std::size_t count, int data_type, int peer,
                     void* stream_handle, bool send) {
  session::Call call;
  Communicator* c = nccl::find(handle);
  Type type{};
  if (c == nullptr || peer < 0 || peer >= c->size || !type_of(data_type, type))
    return ncclInvalidArgument;
  session::Stream* stream = nullptr;
  if (session::find_stream(stream_handle, stream) != 0) return ncclUnhandledCudaError;
  std::uint64_t bytes = count * type.bytes;
  if (bytes == 0) return ncclSuccess;
  if (!nccl::connect(*c, peer, send)) return ncclUnhandledCudaError;
  open_group();
  PointToPoint op{send, static_cast<std::int64_t>(bytes), peer};
  std::uint32_t number = session::state().recorder.op(op, send ? "ncclSend" : "ncclRecv");
  if (session::enqueue(*stream, trace::Kind::point_to_point, number, 0, c->number) != 0)
    return ncclUnhandledCudaError;
  if (stream->capture != nullptr) return ncclSuccess;
  auto& values = session::state().values;
  if (!c->exchange) {
    if (!send) values.forget(address(buffer), bytes);
    return ncclSuccess;
  }
  int from = send ? c->rank : peer, to = send ? peer : c->rank;
  std::uint64_t pair = static_cast<std::uint64_t>(from) << 24 | static_cast<std::uint64_t>(to);
  if (bytes > nccl::value_limit(type.dtype)) {
    if (!send) values.forget(address(buffer), bytes);
    return ncclSuccess;
  }
  // Both ends count. A rank that sends to itself is both, and counts twice.
  auto& counters = send ? c->messages_sent : c->messages_received;
  std::uint64_t seed[2] = {pair, ++counters[pair]};
  std::uint64_t key = (std::uint64_t{1} << 61) |
                      nccl::hash(seed, sizeof seed) >> 3;  // apart from the collectives' keys
  if (send) {
    post_known(*c, key, buffer, bytes);
  } else {
    auto pending = std::make_shared<Message>();
    pending->exchange = c->exchange, pending->key = key, pending->from = from;
    values.promise(address(buffer), bytes, pending);
  }
  return ncclSuccess;
}

std::uint64_t size_of(int type) {
  Type t{};
  return type_of(type, t) ? t.bytes : 0;
}
std::uint64_t members(void* handle) {
  Communicator* c = nccl::find(handle);
  return c != nullptr ? static_cast<std::uint64_t>(c->size) : 0;
}

}  // namespace

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int op,
                           void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(comm, {CollectiveKind::all_reduce, send, receive, bytes, bytes, type, op}, stream,
             "ncclAllReduce");
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root,
                           void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(comm, {CollectiveKind::broadcast, send, receive, bytes, bytes, type, ncclSum, root},
             stream, "ncclBroadcast");
}
ncclResult_t ncclBcast(void* buffer, std::size_t count, int type, int root, void* comm,
                       void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, int type, int op,
                        int root, void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(comm, {CollectiveKind::reduce, send, receive, bytes, bytes, type, op, root}, stream,
             "ncclReduce");
}
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, int type, void* comm,
                           void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(comm, {CollectiveKind::all_gather, send, receive, bytes, bytes * members(comm), type},
             stream, "ncclAllGather");
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, int type, int op,
                               void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(
      comm, {CollectiveKind::reduce_scatter, send, receive, bytes * members(comm), bytes, type, op},
      stream, "ncclReduceScatter");
}
ncclResult_t ncclAlltoAll(const void* send, void* receive, std::size_t count, int type, void* comm,
                          void* stream) {
  std::uint64_t bytes = count * size_of(type) * members(comm);
  return run(comm, {CollectiveKind::all_to_all, send, receive, bytes, bytes, type}, stream,
             "ncclAlltoAll");
}
ncclResult_t ncclGather(const void* send, void* receive, std::size_t count, int type, int root,
                        void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(
      comm,
      {CollectiveKind::gather, send, receive, bytes, bytes * members(comm), type, ncclSum, root},
      stream, "ncclGather");
}
ncclResult_t ncclScatter(const void* send, void* receive, std::size_t count, int type, int root,
                         void* comm, void* stream) {
  std::uint64_t bytes = count * size_of(type);
  return run(
      comm,
      {CollectiveKind::scatter, send, receive, bytes * members(comm), bytes, type, ncclSum, root},
      stream, "ncclScatter");
}
ncclResult_t ncclSend(const void* send, std::size_t count, int type, int peer, void* comm,
                      void* stream) {
  return message(comm, const_cast<void*>(send), count, type, peer, stream, true);
}
ncclResult_t ncclRecv(void* receive, std::size_t count, int type, int peer, void* comm,
                      void* stream) {
  return message(comm, receive, count, type, peer, stream, false);
}

// A pre-multiplied sum costs what a sum costs; the factor only matters for values, which it makes
// unknown.
ncclResult_t ncclRedOpCreatePreMulSum(int* op, void*, int, int, void* comm) {
  if (op == nullptr || nccl::find(comm) == nullptr) return ncclInvalidArgument;
  *op = ncclNumOps;
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(int op, void* comm) {
  return op >= ncclNumOps && nccl::find(comm) ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"
