// A communicator of the emulated NCCL. Who belongs to it and what its collectives do, the session
// knows (session/communicators.h); what NCCL itself keeps is here.
#pragma once

#include <cstdint>

#include "abi/nccl.h"
#include "session/communicators.h"
#include "session/handles.h"
#include "shim/nccl/buffers.h"

namespace maya::nccl {

struct Communicator {
  static constexpr session::HandleKind kind = session::handle_kind("nccl communicator");
  void* handle{};  // the session's
  std::uint64_t splits{};
  bool aborted{};
  Buffers buffers;

  const session::Membership& membership() const { return *session::membership(handle); }
};

inline abi::ncclResult_t result(int code) {
  return code == 0 ? abi::ncclSuccess : abi::ncclUnhandledCudaError;
}

inline bool usable(void* stream) {
  session::StreamProperties properties;
  return session::stream_properties(stream, properties) == 0;
}

inline Communicator* find(void* handle) { return session::find_handle<Communicator>(handle); }

}  // namespace maya::nccl
