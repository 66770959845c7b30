#include "session/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/secrets.h"
#include "network/variables.h"
#include "session/host_clock.h"
#include "session/live_device.h"
#include "session/membership.h"
#include "session/parallel_work.h"
#include "session/places.h"
#include "trace/codec.h"

namespace maya::session {
namespace {

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  std::string text;
  for (const std::string& word : base::without_secrets(words))
    text += (text.empty() ? "" : " ") + word;
  return text.substr(0, 4096);
}

// Only what the prediction uses, by name: the environment holds people's keys and passwords.
void record_environment(std::vector<std::pair<std::string, std::string>>& to) {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const char* equals = std::strchr(*e, '=');
    if (equals == nullptr) continue;
    std::string name(*e, static_cast<std::size_t>(equals - *e));
    switch (network::use_of(name)) {
      case network::VariableUse::modelled:
      case network::VariableUse::not_modelled:
        to.emplace_back(std::move(name), std::string(equals + 1).substr(0, 1024));
        break;
      case network::VariableUse::unknown:  // the user is told its name
        to.emplace_back(std::move(name), "");
        break;
      case network::VariableUse::none:
        break;
    }
  }
}

}  // namespace

// Work, and calls that wait for it.
static bool has_place(trace::Kind kind) {
  using trace::Kind;
  return (kind >= Kind::launch && kind <= Kind::point_to_point) || kind == Kind::graph_launch ||
         (kind >= Kind::stream_wait_event && kind <= Kind::device_synchronize);
}

void Recorder::begin() {
  std::lock_guard guard(mutex_);
  if (begun_) return;
  begun_ = true;
  create_files();
  ready_.store(true, std::memory_order_release);
  if (places_wanted && writer_.is_open()) begin_places(settings_.run_directory);
}

void Recorder::create_files() {
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
  record_environment(identity_.environment);
  if (settings_.run_directory.empty()) return;

  // A rank that is known gets its name at once; else the process is named until a communicator
  // tells.
  rank_known_ = settings_.rank >= 0;
  std::string base = settings_.run_directory + "/";
  Status opened;
  if (rank_known_) {
    std::string rank = base + "rank-" + std::to_string(settings_.rank);
    opened = open(rank + ".maya");
    // A second process of the same rank (a script that starts several programs one after the
    // other).
    for (int i = 2; !opened && i < 100 && access((rank + ".maya").c_str(), F_OK) == 0; ++i)
      opened = open(rank + "." + std::to_string(i) + ".maya");
  } else {
    opened = open(base + "process-" + std::to_string(getpid()) + ".maya");
  }
  if (!opened) {
    std::fprintf(stderr, "maya: this process is not recorded: %s\n",
                 opened.error().message.c_str());
    return;
  }
  write_identity();
}

// Listed first: a process that is killed in between leaves a name without a file, and not a file
// that nobody may remove.
Status Recorder::open(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  list_in_manifest(name);
  list_in_manifest(name + ".tail");
  return writer_.open(path);
}

bool Recorder::rename(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) return false;
  const std::string name = path.substr(path.rfind('/') + 1);
  list_in_manifest(name);
  list_in_manifest(name + ".tail");
  return writer_.rename(path);
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
    if (!rename(base + ".maya"))
      for (int i = 2; i < 100 && !rename(base + "." + std::to_string(i) + ".maya"); ++i) {
      }
  }
  writer_.close();
  if (places_wanted) finish_places();
}

void Recorder::abandon() {
  if (places_wanted) abandon_places();
  writer_.abandon();
  begun_ = true;
  ready_ = true;
  finished_ = true;
}

std::uint32_t Recorder::take_host_ns(std::uint16_t thread, std::uint8_t& flags) {
  bool resumed = false;
  std::uint64_t parallel = 0, host = host_clock().take(resumed, parallel);
  // Where time is virtual, the clock has counted already.
  if (host > 0xffffffffULL || (parallel > 0 && !device_is_live())) [[unlikely]] {
    const double share =
        static_cast<double>(parallel) / static_cast<double>(std::max(host, parallel));
    writer_.append(trace::Record{
        trace::Kind::host_gap,
        team().set ? std::uint8_t{trace::Flag::threads_set} : std::uint8_t{0}, thread, 0,
        parallel > 0 ? team().threads : std::uint16_t{0},
        static_cast<std::uint16_t>(std::lround(share * 0xffff)),
        static_cast<std::uint32_t>(std::min<std::uint64_t>(host / 1000, UINT32_MAX))});
    host %= 1000;
  }
  if (resumed) flags |= trace::Flag::resumed;
  return static_cast<std::uint32_t>(host);
}

void Recorder::record_sleep() {
  constexpr std::uint64_t least_ns = 1000;  // not worth a record
  HostClock& clock = host_clock();
  clock.pass();
  if (clock.pending_ns() < least_ns) return;
  const std::uint16_t thread = thread_number();
  std::uint8_t flags = trace::Flag::sleeps;
  // What does not fit stands in a gap of its own in front of this one.
  const std::uint32_t host = take_host_ns(thread, flags);
  trace::Record record{trace::Kind::host_gap, flags, thread, host};
  if (device_is_live()) live_time_of(record);
  writer_.append(record);
}

void Recorder::record(trace::Kind kind, std::uint16_t stream, std::uint32_t value,
                      std::uint8_t flags, std::uint16_t aux) {
  std::uint16_t thread = thread_number();
  if (places_wanted) [[unlikely]]
    note_place(thread, has_place(kind));
  std::uint32_t host = take_host_ns(thread, flags);
  trace::Record record{kind, flags, thread, host, stream, aux, value};
  const bool live = device_is_live();
  const std::int64_t time = live ? live_time_of(record) : 0;
  writer_.append(record);
  if (live) live_call(record, nullptr, time);
}

void Recorder::record_wide(trace::Kind kind, std::uint32_t x, std::uint64_t y, std::uint32_t value,
                           std::uint16_t stream, std::uint8_t flags) {
  std::uint16_t thread = thread_number();
  if (places_wanted) [[unlikely]]
    note_place(thread, true);
  std::uint32_t host = take_host_ns(thread, flags);
  trace::Wide wide;
  wide.thread = thread, wide.x = x, wide.y = y;
  trace::Record record{kind, flags, thread, host, stream, 0, value};
  const bool live = device_is_live();
  const std::int64_t time = live ? live_time_of(record) : 0;
  writer_.append(wide, record);
  if (!live) return;
  const auto first = std::bit_cast<trace::Record>(wide);
  live_call(record, &first, time);
}

void Recorder::tensor_allocated(std::uint64_t address, std::uint64_t bytes, std::uint16_t pool) {
  if (places_wanted) [[unlikely]]
    note_place(thread_number(), true);
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
  if (inserted) {
    writer_.define(trace::format::Define::graph, next_graph_++, bytes);
    graph_table_.push_back(graph);
  }
  return it->second;
}

trace::Graph Recorder::graph_of(std::uint32_t number) {
  std::lock_guard guard(mutex_);
  return number < graph_table_.size() ? graph_table_[number] : trace::Graph{};
}

trace::Communicator Recorder::communicator_of(std::uint16_t number) {
  std::lock_guard guard(mutex_);
  return number < communicator_table_.size() ? communicator_table_[number] : trace::Communicator{};
}

std::uint16_t Recorder::communicator(const trace::Communicator& communicator) {
  std::string bytes;
  trace::encode(communicator, bytes);
  std::lock_guard guard(mutex_);
  writer_.define(trace::format::Define::communicator, next_communicator_, bytes);
  communicator_table_.push_back(communicator);
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
  rank_known_ = rename(settings_.run_directory + "/rank-" + std::to_string(rank) + ".maya");
  if (!rank_known_) return;
  identity_.rank = rank;
  identity_.world_size = world_size;
  write_identity();
}

}  // namespace maya::session
