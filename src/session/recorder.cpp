#include "session/recorder.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "session/host_clock.h"
#include "trace/codec.h"

namespace maya::session {
namespace {

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0') c = ' ';
  return text.substr(0, 4096);
}

bool matters(const char* variable) {
  for (const char* prefix :
       {"NCCL_", "CUDA_", "TORCH_", "PYTORCH_", "NVTE_", "CUBLAS_", "CUDNN_", "NVIDIA_"})
    if (std::strncmp(variable, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

}  // namespace

void Recorder::begin() {
  std::lock_guard guard(mutex_);
  if (begun_) return;
  begun_ = true;
  identity_.rank = std::max(settings_.rank, 0);
  identity_.local_rank = std::max(settings_.local_rank, 0);
  identity_.world_size = settings_.world_size;
  identity_.node = settings_.node;
  identity_.pid = static_cast<std::uint64_t>(getpid());
  identity_.gpu = settings_.cluster.gpu.name;
  identity_.cluster = settings_.cluster.name;
  identity_.command = command_line();
  identity_.memory_context = static_cast<std::uint64_t>(settings_.cluster.gpu.context_bytes);
  identity_.memory_capacity =
      static_cast<std::uint64_t>(settings_.cluster.gpu.memory_bytes) - identity_.memory_context;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e)
    if (matters(*e))
      if (const char* equals = std::strchr(*e, '='))
        identity_.environment.emplace_back(std::string(*e, static_cast<std::size_t>(equals - *e)),
                                           equals + 1);
  if (settings_.run_directory.empty()) return;

  // A rank that is known gets its name at once; else the process is named until a communicator
  // tells.
  rank_known_ = settings_.rank >= 0;
  std::string base = settings_.run_directory + "/";
  Status opened;
  if (rank_known_) {
    std::string rank = base + "rank-" + std::to_string(settings_.rank);
    opened = writer_.open(rank + ".maya");
    // A second process of the same rank (a script that starts several programs one after the
    // other).
    for (int i = 2; !opened && i < 100 && access((rank + ".maya").c_str(), F_OK) == 0; ++i)
      opened = writer_.open(rank + "." + std::to_string(i) + ".maya");
  } else {
    opened = writer_.open(base + "process-" + std::to_string(getpid()) + ".maya");
  }
  if (!opened) {
    std::fprintf(stderr, "maya: this process is not recorded: %s\n",
                 opened.error().message.c_str());
    return;
  }
  write_identity();
}

void Recorder::write_identity() {
  std::string bytes;
  trace::encode(identity_, bytes);
  writer_.define(trace::format::Define::identity, 0, bytes);
}

void Recorder::finish() {
  std::lock_guard guard(mutex_);
  if (!begun_ || finished_) return;
  finished_ = true;
  write_identity();  // versions and rank may have become known
  for (const auto& [name, count] : unimplemented_)
    writer_.define(trace::format::Define::unimplemented, count, name);
  for (const auto& [what, count] : warnings_)
    writer_.define(trace::format::Define::warning, count, what);
  if (!rank_known_ && writer_.is_open()) {
    std::string base = settings_.run_directory + "/rank-0";
    if (!writer_.rename(base + ".maya"))
      for (int i = 2; i < 100 && !writer_.rename(base + "." + std::to_string(i) + ".maya"); ++i) {
      }
  }
  writer_.close();
}

void Recorder::abandon() {
  writer_.abandon();
  begun_ = finished_ = true;
}

std::uint32_t Recorder::take_host_ns(std::uint16_t thread, std::uint8_t& flags) {
  bool resumed = false;
  std::uint64_t host = host_clock().take(resumed);
  if (host > 0xffffffffULL) [[unlikely]] {
    writer_.append(trace::Record{trace::Kind::host_gap, 0, thread, 0, 0, 0,
                                 static_cast<std::uint32_t>(host / 1000)});
    host %= 1000;
  }
  if (resumed) flags |= trace::Flag::resumed;
  return static_cast<std::uint32_t>(host);
}

void Recorder::record(trace::Kind kind, std::uint16_t stream, std::uint32_t value,
                      std::uint8_t flags, std::uint16_t aux) {
  std::uint16_t thread = thread_number();
  std::uint32_t host = take_host_ns(thread, flags);
  writer_.append(trace::Record{kind, flags, thread, host, stream, aux, value});
}

void Recorder::record_wide(trace::Kind kind, std::uint32_t x, std::uint64_t y, std::uint32_t value,
                           std::uint16_t stream, std::uint8_t flags) {
  std::uint16_t thread = thread_number();
  std::uint32_t host = take_host_ns(thread, flags);
  trace::Wide wide;
  wide.thread = thread, wide.x = x, wide.y = y;
  writer_.append(wide, trace::Record{kind, flags, thread, host, stream, 0, value});
}

void Recorder::tensor_allocated(std::uint64_t address, std::uint64_t bytes, std::uint16_t pool) {
  trace::Wide wide;
  wide.thread = thread_number(), wide.x = static_cast<std::uint32_t>(address >> 32), wide.y = bytes;
  writer_.append(wide, trace::Record{trace::Kind::tensor_allocate, 0, wide.thread, 0, pool, 0,
                                     static_cast<std::uint32_t>(address)});
}

void Recorder::tensor_released(std::uint64_t address) {
  writer_.append(trace::Record{trace::Kind::tensor_release, 0, thread_number(), 0, 0,
                               static_cast<std::uint16_t>(address >> 32),
                               static_cast<std::uint32_t>(address)});
}

std::uint32_t Recorder::define(std::uint64_t hash, Op op) {
  std::string bytes;
  trace::encode(op, bytes);
  std::uint32_t number = next_op_++;
  writer_.define(trace::format::Define::op, number, bytes);
  op_table_.push_back(std::move(op));
  ops_.emplace(hash, number);
  return number;
}

std::uint32_t Recorder::op(const Work& work, const char* name) {
  std::uint64_t hash = trace::hash(work, name);
  std::lock_guard guard(mutex_);
  if (auto it = ops_.find(hash); it != ops_.end()) return it->second;
  return define(hash, Op{work, name, {}});
}

std::uint32_t Recorder::op(const Op& op) {
  std::uint64_t hash = trace::hash(op.work, op.name);
  for (auto v : op.geometry.grid) hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
  for (auto v : op.geometry.block) hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
  std::lock_guard guard(mutex_);
  if (auto it = ops_.find(hash); it != ops_.end()) return it->second;
  return define(hash, op);
}

Op Recorder::op_of(std::uint32_t number) {
  std::lock_guard guard(mutex_);
  return number < op_table_.size() ? op_table_[number] : Op{};
}

std::uint32_t Recorder::text(std::string_view text) {
  std::lock_guard guard(mutex_);
  auto [it, inserted] = texts_.emplace(text, next_text_);
  if (inserted) writer_.define(trace::format::Define::text, next_text_++, text.substr(0, 1024));
  return it->second;
}

std::uint32_t Recorder::graph(const trace::Graph& graph) {
  std::string bytes;
  trace::encode(graph, bytes);
  std::lock_guard guard(mutex_);
  // Programs rebuild or update graphs as their buffers move; what is asked of the device is then
  // the same.
  auto [it, inserted] = graphs_.emplace(std::hash<std::string>{}(bytes), next_graph_);
  if (inserted) writer_.define(trace::format::Define::graph, next_graph_++, bytes);
  return it->second;
}

std::uint16_t Recorder::communicator(const trace::Communicator& communicator) {
  std::string bytes;
  trace::encode(communicator, bytes);
  std::lock_guard guard(mutex_);
  writer_.define(trace::format::Define::communicator, next_communicator_, bytes);
  return next_communicator_++;
}

void Recorder::unimplemented(const char* library, const char* function) {
  std::lock_guard guard(mutex_);
  if (unimplemented_[function]++ == 0 && settings_.log_warnings)
    std::fprintf(stderr, "maya: %s: %s is not implemented\n", library, function);
}

void Recorder::warning(const std::string& what) {
  std::lock_guard guard(mutex_);
  if (warnings_[what]++ == 0 && settings_.log_warnings)
    std::fprintf(stderr, "maya: %s\n", what.c_str());
}

void Recorder::version(const std::string& library, const std::string& version) {
  std::lock_guard guard(mutex_);
  for (auto& [name, value] : identity_.versions)
    if (name == library) {
      value = version;
      return;
    }
  identity_.versions.emplace_back(library, version);
}

void Recorder::learn_rank(int rank, int world_size) {
  std::lock_guard guard(mutex_);
  if (rank_known_ || !begun_ || finished_ || settings_.run_directory.empty()) return;
  if (world_size < 2) return;
  rank_known_ = writer_.rename(settings_.run_directory + "/rank-" + std::to_string(rank) + ".maya");
  if (!rank_known_) return;
  identity_.rank = rank;
  identity_.world_size = world_size;
  write_identity();
}

}  // namespace maya::session
