// The host calls of NVSHMEM that torch binds to: the library initializes, allocates on the device
// and moves data by copies. Peers are other processes' devices, whose memory this process does not
// see.
#include <atomic>
#include <cstring>

#include "abi/handles.h"
#include "session/session.h"

namespace session = maya::session;
using maya::abi::CUstream_st;

namespace {

std::atomic<int> rank{0}, ranks{1}, status{0};
std::atomic<int> next_team{16};  // below are the predefined ones

int copy(const char* name, std::size_t bytes, void* to, CUstream_st* stream) {
  session::Call call;
  maya::Copy work;
  work.bytes = static_cast<std::int64_t>(bytes);
  work.direction = maya::CopyDirection::peer;
  return session::submit(stream, work, name, {session::writes(to, bytes)});
}

}  // namespace

extern "C" {

int nvshmemid_hostlib_init_attr(int requested, int* provided, unsigned, void*, long,
                                void (*)(void**, void**)) {
  session::Call call;
  if (provided) *provided = requested;
  status = 2;  // bootstrapped and initialized
  return 0;
}
void nvshmemid_hostlib_finalize(void*, void*) { status = 0; }
int nvshmemid_init_status() { return status; }
int nvshmemx_get_uniqueid(void* id) {
  if (!id) return 1;
  std::memset(id, 0, 128);
  return 0;
}
int nvshmemx_set_attr_uniqueid_args(const int own, const int count, const void*, void*) {
  if (own < 0 || own >= count) return 1;
  rank = own, ranks = count;
  return 0;
}
int nvshmemx_cumodule_init(void*) { return 0; }
void nvshmem_info_get_version(int* major, int* minor) {
  if (major) *major = 1;
  if (minor) *minor = 3;
}
int nvshmem_my_pe() { return rank; }
int nvshmem_n_pes() { return ranks; }
int nvshmem_team_my_pe(int) { return rank; }
int nvshmem_team_n_pes(int) { return ranks; }
int nvshmem_team_split_strided(int, int, int, int, const void*, long, int* team) {
  if (!team) return 1;
  *team = next_team++;
  return 0;
}
void nvshmem_barrier_all() { session::Call call; }

void* nvshmem_malloc(std::size_t bytes) {
  session::Call call;
  void* address = nullptr;
  return session::allocate(&address, bytes, session::MemoryKind::device) == 0 ? address : nullptr;
}
void nvshmem_free(void* address) {
  session::Call call;
  if (address) session::release(address);
}
// Only the own copy of a symmetric object has an address here.
void* nvshmem_ptr(const void* address, int pe) {
  return pe == rank ? const_cast<void*>(address) : nullptr;
}
void* nvshmemx_mc_ptr(int, const void*) { return nullptr; }

int nvshmemx_alltoallmem_on_stream(int, void* to, const void*, std::size_t bytes,
                                   CUstream_st* stream) {
  return copy("nvshmemx_alltoallmem_on_stream", bytes * static_cast<std::size_t>(ranks.load()), to,
              stream);
}
int nvshmemx_broadcastmem_on_stream(int, void* to, const void*, std::size_t bytes, int,
                                    CUstream_st* stream) {
  return copy("nvshmemx_broadcastmem_on_stream", bytes, to, stream);
}
void nvshmemx_getmem_on_stream(void* to, const void*, std::size_t bytes, int, CUstream_st* stream) {
  copy("nvshmemx_getmem_on_stream", bytes, to, stream);
}
void nvshmemx_putmem_on_stream(void* to, const void*, std::size_t bytes, int, CUstream_st* stream) {
  copy("nvshmemx_putmem_on_stream", bytes, to, stream);
}
void nvshmemx_putmem_signal_on_stream(void* to, const void*, std::size_t bytes, std::uint64_t*,
                                      std::uint64_t, int, int, CUstream_st* stream) {
  copy("nvshmemx_putmem_signal_on_stream", bytes, to, stream);
}
void nvshmemx_signal_wait_until_on_stream(std::uint64_t*, int, std::uint64_t, CUstream_st*) {
  session::Call call;
}

}  // extern "C"
