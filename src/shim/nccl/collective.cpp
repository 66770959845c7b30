#include <algorithm>

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

std::shared_ptr<values::SentAsRoot> sent_in_group() {
  auto& g = nccl::group();
  if (g.depth == 0) return nullptr;
  if (g.sent_as_root == nullptr) g.sent_as_root = std::make_shared<values::SentAsRoot>();
  return g.sent_as_root;
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
  if (stream->capture == nullptr)
    c->member.collective({q.kind, address(q.send), address(q.receive), q.send_bytes,
                          q.receive_bytes, type.dtype, reduce_of(q.op), q.root},
                         session::state().values, sent_in_group());
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
  if (send)
    c->member.send(address(buffer), bytes, type.dtype, peer, values);
  else
    c->member.receive(address(buffer), bytes, type.dtype, peer, values);
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
