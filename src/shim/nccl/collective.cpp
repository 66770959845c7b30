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

struct Request {
  CollectiveKind kind;
  const void* send;
  void* receive;
  std::uint64_t send_bytes, receive_bytes;
  int type;
  int op = ncclSum;
  int root = -1;
};

ncclResult_t run(void* handle, const Request& q, void* stream, const char* name) {
  session::Call call;
  Communicator* c = nccl::find(handle);
  if (c == nullptr || c->aborted) return c == nullptr ? ncclInvalidArgument : ncclInvalidUsage;
  Type type{};
  if (!type_of(q.type, type) || q.root >= c->membership().size) return ncclInvalidArgument;
  if (!nccl::usable(stream)) return ncclUnhandledCudaError;
  if (q.send_bytes + q.receive_bytes > 0 && !nccl::connect(*c, q.kind))
    return ncclUnhandledCudaError;
  return nccl::result(session::collective(c->handle,
                                          {q.kind, q.send, q.receive, q.send_bytes, q.receive_bytes,
                                           type.dtype, reduce_of(q.op), q.root},
                                          name, stream));
}

// What sends and receives check alike. Null: `error` says why.
Communicator* connected(void* handle, std::uint64_t count, int data_type, int peer, void* stream,
                        bool send, Type& type, ncclResult_t& error) {
  Communicator* c = nccl::find(handle);
  error = ncclInvalidArgument;
  if (c == nullptr || peer < 0 || peer >= c->membership().size || !type_of(data_type, type))
    return nullptr;
  error = ncclUnhandledCudaError;
  if (!nccl::usable(stream)) return nullptr;
  error = ncclSuccess;
  if (count == 0) return nullptr;
  if (nccl::connect(*c, peer, send)) return c;
  error = ncclUnhandledCudaError;
  return nullptr;
}

std::uint64_t size_of(int type) {
  Type t{};
  return type_of(type, t) ? t.bytes : 0;
}
std::uint64_t members(void* handle) {
  Communicator* c = nccl::find(handle);
  return c != nullptr ? static_cast<std::uint64_t>(c->membership().size) : 0;
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
  session::Call call;
  Type t{};
  ncclResult_t error{};
  Communicator* c = connected(comm, count, type, peer, stream, true, t, error);
  if (c == nullptr) return error;
  return nccl::result(
      session::message_send(c->handle, send, count * t.bytes, t.dtype, peer, "ncclSend", stream));
}
ncclResult_t ncclRecv(void* receive, std::size_t count, int type, int peer, void* comm,
                      void* stream) {
  session::Call call;
  Type t{};
  ncclResult_t error{};
  Communicator* c = connected(comm, count, type, peer, stream, false, t, error);
  if (c == nullptr) return error;
  return nccl::result(session::message_receive(c->handle, receive, count * t.bytes, t.dtype, peer,
                                               "ncclRecv", stream));
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
