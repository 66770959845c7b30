// Launches: which op one is, and what it does to the values that are known.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "maya/assumed.h"
#include "session/calls.h"
#include "session/execution.h"
#include "session/launch_lock.h"
#include "values/compute.h"

namespace maya::session {
namespace {

std::uint64_t hash_bytes(const std::byte* bytes, std::size_t count, std::uint64_t h) {
  while (count >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 32;
    bytes += 8, count -= 8;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  h = (h ^ word ^ (std::uint64_t{count} << 56)) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 29);
}

std::uint64_t argument_word(void* const* arguments, std::size_t parameter, std::size_t offset) {
  std::uint64_t word;
  std::memcpy(&word, static_cast<const char*>(arguments[parameter]) + offset, 8);
  return word;
}

// Whether an argument points at bytes whose value is known, or a known value lies somewhere in what
// the launch writes: then it must be looked at closely.
bool meets_values(const Function& function, const Function::Seen* seen, void* const* arguments) {
  State& s = state();
  const auto& sizes = function.code.parameter_sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (std::size_t at = 0; at + 8 <= sizes[i]; at += 8)
      if (s.values.possible(argument_word(arguments, i, at))) return true;
  if (seen == nullptr) return true;
  for (std::uint32_t i = 0; i < seen->writes; ++i) {
    const auto& write = function.writes[seen->first_write + i];
    if (s.values.possible_in(argument_word(arguments, write.parameter, write.offset), write.bytes))
      return true;
  }
  return false;
}

bool reads_only(const Function& function, std::size_t parameter) {
  const auto& mask = function.kernel.read_only;
  return parameter < mask.size() && mask[parameter];
}

constexpr std::size_t most_writes = 2048;  // of lists of tensors

// Known tensors that lie side by side are one stretch of known bytes: a kernel writes no more of it
// than it writes at all. Where the bytes do not lie together nobody can tell.
std::uint64_t furthest_write(const decode::Decoded& decoded) {
  const auto* pointwise = std::get_if<Pointwise>(&decoded.op.work);
  const double bytes = bytes_written(decoded.op.work);
  if (!decoded.recognised || bytes <= 0 || (pointwise != nullptr && pointwise->strided))
    return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t output_bytes(const decode::Decoded& decoded) {
  if (const auto* other = std::get_if<OtherKernel>(&decoded.op.work);
      other != nullptr && other->pointers > 0)
    return static_cast<std::uint64_t>(other->bytes_touched / other->pointers);
  return static_cast<std::uint64_t>(std::max(0.0, bytes_written(decoded.op.work)));
}

// How far a launch writes from a pointer in its arguments, 0: not at all.
std::uint64_t reach_of_output(std::uint64_t pointer, std::uint64_t output) {
  // Small tensors of many kinds share an allocation: there only what the pointer meets is
  // forgotten.
  constexpr std::uint64_t shared = 1 << 20;
  return output >= shared && state().memory.extent(pointer) >= output ? output : 0;
}

std::uint64_t reach_of_access(std::uint64_t pointer, const decode::Decoded& decoded) {
  std::uint64_t reach = 0;
  for (const auto& access : decoded.accesses)
    if (access.write && access.address == pointer) reach = std::max(reach, access.bytes);
  return reach;
}

// Addresses written, as places in the arguments. `reach` says how far from a pointer.
template <class Reach>
std::vector<Function::Write> find_writes(const Function& function, void* const* arguments,
                                         Reach&& reach) {
  std::vector<Function::Write> found;
  const auto& sizes = function.code.parameter_sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (reads_only(function, i)) continue;
    for (std::size_t at = 0; at + 8 <= sizes[i] && found.size() < most_writes; at += 8)
      if (const std::uint64_t bytes = reach(argument_word(arguments, i, at)); bytes > 0)
        found.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(at), bytes});
  }
  return found;
}

// Where the decoder does not say it, every pointer to an allocation that is large enough to be the
// output.
std::vector<Function::Write> find_writes(const Function& function, const decode::Decoded& decoded,
                                         void* const* arguments) {
  const std::uint64_t output = output_bytes(decoded);
  return find_writes(function, arguments, [&](std::uint64_t pointer) {
    return decoded.accesses.empty() ? reach_of_output(pointer, output)
                                    : reach_of_access(pointer, decoded);
  });
}

// No kernel writes past the allocation it was given, whatever its decoder makes of the sizes.
void forget_write(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  if (s.values.possible_in(address, bytes))
    s.values.forget(address, std::min(bytes, s.memory.extent(address)));
}

// Of a launch that may write behind any of its pointers.
void forget_arguments(const Function& function, std::uint64_t reach, std::uint64_t output,
                      void* const* arguments) {
  State& s = state();
  const auto& sizes = function.code.parameter_sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (reads_only(function, i)) continue;
    for (std::size_t at = 0; at + 8 <= sizes[i]; at += 8)
      s.values.forget_from(argument_word(arguments, i, at), reach);
  }
  forget_behind_tables(function, arguments);
  for (const auto& write : find_writes(function, arguments, [output](std::uint64_t pointer) {
         return reach_of_output(pointer, output);
       }))
    forget_write(argument_word(arguments, write.parameter, write.offset), write.bytes);
}

// Nothing is computed, and the decoder does not say what is written.
bool writes_anywhere(const decode::Decoded& decoded) {
  return decoded.semantics.kind == values::Semantics::Kind::unknown && decoded.accesses.empty();
}

// Chooses, counts or moves by integers. What is computed element by element is followed as a
// formula where it is large (values/formula.h).
bool chooses(const values::Semantics& s) {
  using Kind = values::Semantics::Kind;
  switch (s.kind) {
    case Kind::reduce:
    case Kind::scan:
    case Kind::histogram:
    case Kind::sort:
    case Kind::topk:
    case Kind::gather:
    case Kind::scatter:
      return std::any_of(s.outputs.begin(), s.outputs.end(),
                         [](const auto& output) { return is_integer(output.dtype); });
    default:
      return false;
  }
}

void apply_values(const Function& function, const decode::Decoded& decoded,
                  void* const* arguments) {
  State& s = state();
  if (decoded.semantics.kind != values::Semantics::Kind::unknown) {
    const std::uint64_t limit =
        chooses(decoded.semantics) ? s.settings.integer_limit() : s.settings.value_limit;
    if (compute(decoded.semantics, s.values, limit) == values::Answer::whole_mask)
      s.recorder.warning("boolean masks of unknown values (treated as all true)");
    return;
  }
  if (decoded.accesses.empty()) {
    forget_arguments(function, furthest_write(decoded), output_bytes(decoded), arguments);
    return;
  }
  for (const auto& access : decoded.accesses) {
    if (!access.write) continue;
    if (access.at_least) s.values.forget_from(access.address);
    forget_write(access.address, access.bytes);
  }
}

Function::Seen* find_seen(Function& function, std::uint64_t hash) {
  if (function.seen.empty()) return nullptr;
  std::size_t mask = function.seen.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    if (function.seen[i].hash == hash) return &function.seen[i];
    if (function.seen[i].hash == 0) return nullptr;
  }
}

// Every write of the launch is a place in its arguments, and nothing is computed from values.
bool writes_only(const decode::Decoded& decoded, const std::vector<Function::Write>& writes) {
  if (decoded.semantics.kind != values::Semantics::Kind::unknown || decoded.accesses.empty())
    return false;
  std::size_t count = 0;
  for (const auto& access : decoded.accesses) {
    if (access.write && access.at_least) return false;
    count += access.write;
  }
  return count == writes.size() && count < most_writes;
}

void add_seen(Function& function, std::uint64_t hash, std::uint32_t op,
              const decode::Decoded& decoded, const std::vector<Function::Write>& writes) {
  if (function.seen_count * 2 >= function.seen.size()) {
    std::vector<Function::Seen> old = std::move(function.seen);
    function.seen.assign(std::max<std::size_t>(old.size() * 2, 8), {});
    for (const auto& entry : old)
      if (entry.hash != 0) {
        std::size_t mask = function.seen.size() - 1, i = entry.hash & mask;
        while (function.seen[i].hash != 0) i = (i + 1) & mask;
        function.seen[i] = entry;
      }
  }
  std::size_t mask = function.seen.size() - 1, i = hash & mask;
  while (function.seen[i].hash != 0) i = (i + 1) & mask;
  function.seen[i] = {hash,
                      op,
                      static_cast<std::uint32_t>(function.writes.size()),
                      static_cast<std::uint32_t>(writes.size()),
                      writes_only(decoded, writes),
                      writes_anywhere(decoded),
                      furthest_write(decoded),
                      output_bytes(decoded)};
  function.writes.insert(function.writes.end(), writes.begin(), writes.end());
  ++function.seen_count;
}

// MAYA_DUMP_LAUNCHES=FILE: name, geometry and argument bytes of each new launch, for work on
// decoders.
void dump(const Function& function, const Geometry& g, void* const* arguments,
          const decode::Decoded& decoded) {
  static std::FILE* file = [] {
    const char* path = std::getenv("MAYA_DUMP_LAUNCHES");
    return path ? std::fopen(path, "w") : nullptr;
  }();
  if (file == nullptr) return;
  std::fprintf(file, "kernel %s\n  grid %u %u %u block %u %u %u shared %u work %zu recognised %d\n",
               function.name.c_str(), g.grid[0], g.grid[1], g.grid[2], g.block[0], g.block[1],
               g.block[2], g.shared_bytes, decoded.op.work.index(), decoded.recognised);
  for (std::size_t i = 0; i < function.code.parameter_sizes.size(); ++i) {
    std::fprintf(file, "  arg %zu offset %u size %u:", i, function.code.parameter_offsets[i],
                 function.code.parameter_sizes[i]);
    for (unsigned b = 0; b < function.code.parameter_sizes[i]; ++b)
      std::fprintf(file, "%s%02x", b % 4 == 0 ? " " : "",
                   static_cast<const unsigned char*>(arguments[i])[b]);
    std::fputc('\n', file);
  }
  std::fflush(file);
}

// Kernels in which ranks wait for each other, by op: how many ranks. Most processes have none.
class Meetings {
 public:
  void add(std::uint32_t op, int ranks) {
    std::lock_guard guard(mutex_);
    ranks_[op] = ranks;
    any_.store(true, std::memory_order_release);
  }
  int ranks(std::uint32_t op) {
    if (!any_.load(std::memory_order_acquire)) [[likely]]
      return 0;
    std::lock_guard guard(mutex_);
    const auto found = ranks_.find(op);
    return found == ranks_.end() ? 0 : found->second;
  }

 private:
  std::atomic<bool> any_{};
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, int> ranks_;
};

Meetings& meetings() {
  static Meetings all;
  return all;
}

// The op of a launch, from the table of launches seen or by decoding. `runs`: now, as opposed to
// being put into a graph, where it does nothing to values yet.
std::uint32_t op_of_launch(Function& function, const Geometry& geometry, void* const* arguments,
                           bool runs) {
  State& s = state();
  LaunchLock::Hold hold(launch_lock());
  decode::Launch launch{&function.kernel, geometry, arguments, &reachable, &known_at, &possible_at};
  std::byte key[256];
  std::size_t key_bytes = function.decoder->key(launch, key, sizeof key);
  std::uint64_t hash = hash_bytes(reinterpret_cast<const std::byte*>(&geometry),
                                  sizeof(std::uint32_t) * 7, 0x2545f4914f6cdd1dULL);
  hash = hash_bytes(key, key_bytes, hash) | 1;
  const Function::Seen* seen = find_seen(function, hash);
  if (seen != nullptr && !runs) return seen->op;
  bool values = function.touches_values ||
                (function.touches_values_up_to > 0 &&
                 function.decoder->elements(launch) <= function.touches_values_up_to) ||
                meets_values(function, seen, arguments) || meets_host_memory(function, arguments);
  if (seen != nullptr && !values) [[likely]]
    return seen->op;
  if (seen != nullptr && seen->complete) {
    for (std::uint32_t i = 0; i < seen->writes; ++i) {
      const auto& write = function.writes[seen->first_write + i];
      forget_write(argument_word(arguments, write.parameter, write.offset), write.bytes);
    }
    return seen->op;
  }
  if (seen != nullptr) {
    const Function::Seen known = *seen;  // running it may wait, and the table change
    if (run_on_values(function, launch)) return known.op;
    if (known.anywhere) {
      forget_arguments(function, known.reach, known.output, arguments);
      return known.op;
    }
  }
  decode::Decoded decoded = function.decoder->decode(launch);
  if (values && runs && (seen != nullptr || !run_on_values(function, launch)))
    apply_values(function, decoded, arguments);
  // Both may have waited for a peer without the lock: another thread may have changed the table.
  if (seen = find_seen(function, hash); seen != nullptr) return seen->op;
  decoded.op.name = function.kernel.demangled;
  if (!decoded.recognised && !std::holds_alternative<OtherKernel>(decoded.op.work))
    decoded.op.name += sizes_assumed;
  decoded.op.geometry = geometry;
  decoded.op.geometry.registers = function.code.registers;
  decoded.op.geometry.shared_bytes += function.code.static_shared;
  dump(function, geometry, arguments, decoded);
  std::uint32_t op = s.recorder.op(decoded.op);
  if (decoded.ranks > 1) [[unlikely]]
    meetings().add(op, decoded.ranks);
  auto writes = find_writes(function, decoded, arguments);
  add_seen(function, hash, op, decoded, writes);
  return op;
}

int check_geometry(const Geometry& g) {
  const auto& gpu = state().settings.cluster.gpu;
  std::uint64_t threads = std::uint64_t{g.block[0]} * g.block[1] * g.block[2];
  if (threads == 0 || threads > 1024 || g.block[2] > 64 || g.blocks() == 0 || g.grid[1] > 65535 ||
      g.grid[2] > 65535)
    return code::invalid_configuration;
  if (gpu.shared_per_block_optin > 0 && g.shared_bytes > gpu.shared_per_block_optin)
    return code::invalid_value;
  return code::success;
}

}  // namespace

LaunchLock& launch_lock() {
  static constinit LaunchLock lock;
  return lock;
}

namespace {

// The communicator of this size that was made last. Empty: there is none.
std::optional<std::uint16_t> latest_communicator(int size) {
  std::optional<std::uint16_t> found;
  for (std::uint16_t i = 0;; ++i) {
    const int members = state().recorder.communicator_of(i).size;
    if (members == size) found = i;
    if (members == 0) return found;
  }
}

// A kernel in which ranks wait for each other is recorded as a collective of a communicator with as
// many members: engines make one for the same ranks beside their own kernels. Without one nobody
// can tell who they are.
trace::Record record_of(std::uint32_t op) {
  trace::Record record{};
  record.kind = trace::Kind::launch;
  record.value = op;
  const int ranks = meetings().ranks(op);
  if (ranks == 0) [[likely]]
    return record;
  if (auto communicator = latest_communicator(ranks)) {
    record.kind = trace::Kind::collective;
    record.aux = *communicator;
  } else {
    state().recorder.warning("all-reduce kernels of ranks that share no communicator");
  }
  return record;
}

int launch_function(Function& function, const Geometry& geometry, void* const* arguments,
                    void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (int error = resolve(function)) return error;
  if (int error = check_geometry(geometry)) return error;
  if (arguments == nullptr && !function.code.parameter_sizes.empty()) return code::invalid_value;
  const std::uint32_t op = op_of_launch(function, geometry, arguments, stream->capture == nullptr);
  const trace::Record record = record_of(op);
  if (stream->capture != nullptr) {
    Node* node = capture_node(*stream, NodeType::kernel, record);
    if (node == nullptr) return code::capture_invalidated;
    return set_kernel(*node, function, geometry, arguments);
  }
  return enqueue(*stream, record.kind, op, 0, record.aux);
}

// Pointers to the arguments in a buffer that has them all.
int unpack_arguments(Function& function, const PackedArguments& packed,
                     std::vector<void*>& arguments) {
  if (int error = resolve(function)) return error;
  for (std::size_t i = 0; i < function.code.parameter_offsets.size(); ++i) {
    if (std::size_t{function.code.parameter_offsets[i]} + function.code.parameter_sizes[i] >
        packed.bytes)
      return code::invalid_value;
    arguments.push_back(const_cast<char*>(static_cast<const char*>(packed.buffer)) +
                        function.code.parameter_offsets[i]);
  }
  return code::success;
}
}  // namespace

std::uint32_t op_of_replay(Function& function, const Geometry& geometry, void* const* arguments) {
  return op_of_launch(function, geometry, arguments, true);
}

int launch(void* handle, const Geometry& geometry, void* const* arguments, void* stream) {
  Function* function = find_function(handle);
  if (function == nullptr) return code::invalid_handle;
  return launch_function(*function, geometry, arguments, stream);
}

int launch(void* handle, const Geometry& geometry, const PackedArguments& packed, void* stream) {
  Function* function = find_function(handle);
  if (function == nullptr) return code::invalid_handle;
  std::vector<void*> arguments;
  if (int error = unpack_arguments(*function, packed, arguments)) return error;
  return launch_function(*function, geometry, arguments.data(), stream);
}

int launch_registered(const void* host, const Geometry& geometry, void* const* arguments,
                      void* stream) {
  Function* function = function_of_stub(host);
  if (function == nullptr) [[unlikely]]
    return ready() ? ready() : code::invalid_device_function;
  return launch_function(*function, geometry, arguments, stream);
}

int node_kernel(void* handle, void* function_handle, const Geometry& geometry,
                void* const* arguments) {
  Node* node = find_node(handle);
  Function* function = find_function(function_handle);
  if (node == nullptr) return code::invalid_value;
  if (function == nullptr) return code::invalid_handle;
  node->record = {};
  return set_kernel(*node, *function, geometry, arguments);
}

int node_kernel(void* node, void* function_handle, const Geometry& geometry,
                const PackedArguments& packed) {
  Function* function = find_function(function_handle);
  if (function == nullptr) return code::invalid_handle;
  std::vector<void*> arguments;
  if (int error = unpack_arguments(*function, packed, arguments)) return error;
  return node_kernel(node, function_handle, geometry, arguments.data());
}

int set_kernel(Node& node, Function& function, const Geometry& geometry, void* const* arguments) {
  if (int error = resolve(function)) return error;
  const auto& sizes = function.code.parameter_sizes;
  const std::size_t count = sizes.size();
  if (arguments == nullptr && count > 0) return code::invalid_value;
  node.arguments.clear();
  node.argument_pointers.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const char* bytes = static_cast<const char*>(arguments[i]);
    node.arguments.emplace_back(bytes, bytes + sizes[i]);
  }
  for (auto& bytes : node.arguments) node.argument_pointers.push_back(bytes.data());
  node.function = &function;
  node.geometry = geometry;
  if (node.record.kind == trace::Kind::none) {
    node.record.kind = trace::Kind::launch;
    node.record.value = op_of_launch(function, geometry, node.argument_pointers.data(), false);
  }
  return code::success;
}

}  // namespace maya::session
