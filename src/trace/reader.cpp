#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/visible.h"
#include "maya/trace.h"
#include "trace/budget.h"
#include "trace/codec.h"
#include "trace/format.h"

namespace maya::trace {
namespace {

// A file mapped for reading.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      error_ = std::strerror(errno);
      return;
    }
    struct stat info {};
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<std::size_t>(info.st_size);
      if (size_ > 0) {
        void* map = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
        if (map != MAP_FAILED) data_ = static_cast<const char*>(map);
      }
      if (data_ == nullptr) error_ = size_ ? std::strerror(errno) : "the file is empty";
    } else {
      error_ = "not a regular file";
    }
    ::close(file);
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  const std::string& error() const { return error_; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::string error_;
};

// Reads units in order and fills the recording.
class Assembler {
 public:
  explicit Assembler(Recording& out) : out_(out) { bound(); }

  // Returns what is wrong, or an empty string. An empty unit ends a tail; in a block it is damage.
  std::string take(const char* data, std::size_t bytes, bool tail) {
    const std::size_t units = bytes / sizeof(Record);
    const auto at = [&](std::size_t i) { return data + i * sizeof(Record); };
    for (std::size_t i = 0; i < units;) {
      i += take_plain(at(i), units - i);
      if (i == units) break;
      auto kind = static_cast<std::uint8_t>(*at(i));
      if (kind == format::define_kind) {
        format::DefineUnit head;
        std::memcpy(&head, at(i), sizeof head);
        std::size_t room = (units - i - 1) * sizeof(Record);
        if (head.bytes > room) return tail ? "" : "a definition runs past its block";
        if (std::string fault = define(head, at(i + 1)); !fault.empty()) return fault;
        bound();
        i += 1 + (head.bytes + sizeof(Record) - 1) / sizeof(Record);
        continue;
      }
      if (kind == 0) return tail ? "" : "an empty unit inside a block";
      if (kind > last_kind) return "unknown record kind " + std::to_string(kind);
      Record record;
      std::memcpy(&record, at(i), sizeof record);
      if (record.kind != Kind::wide) return fault_of(record);
      // The second half must follow immediately.
      Record second{};
      if (i + 1 < units) std::memcpy(&second, at(i + 1), sizeof second);
      if (second.kind == Kind::none) return tail ? "" : "half a wide entry";
      if (second.kind != Kind::allocate && second.kind != Kind::release &&
          second.kind != Kind::out_of_memory && second.kind != Kind::tensor_allocate)
        return "a wide entry without its record";
      out_.records.push_back(record), out_.records.push_back(second);
      i += 2;
    }
    return "";
  }

 private:
  static constexpr auto last_kind = static_cast<std::uint8_t>(Kind::tensor_release);
  static constexpr std::uint64_t any = std::uint64_t{1} << 32;

  // Upper bounds of `value` and `aux` by kind of record. The bound is zero for entries that are not
  // plain records, so that one comparison both protects the tables and finds these entries.
  struct Bound {
    std::uint64_t value, aux;
  };
  void bound() {
    for (int kind = 1; kind <= last_kind; ++kind) bounds_[kind] = {any, any};
    bounds_[static_cast<int>(Kind::wide)].value = 0;
    const auto below = [&](Kind kind) -> Bound& { return bounds_[static_cast<int>(kind)]; };
    for (Kind kind : {Kind::launch, Kind::copy, Kind::fill, Kind::collective, Kind::point_to_point})
      below(kind).value = out_.ops.size();
    for (Kind kind : {Kind::collective, Kind::point_to_point})
      below(kind).aux = out_.communicators.size();
    below(Kind::graph_launch).value = out_.graphs.size();
    for (Kind kind : {Kind::range_push, Kind::mark, Kind::step_boundary})
      below(kind).value = out_.strings.size();
  }

  bool within(const Record& r) const {
    const Bound& bound = bounds_[static_cast<std::uint8_t>(r.kind)];
    return r.value < bound.value && r.aux < bound.aux;
  }

  // Copies the plain records at the front in one go and returns their number. Most of a recording
  // consists of them.
  std::size_t take_plain(const char* data, std::size_t units) {
    const auto* first = reinterpret_cast<const Record*>(data);
    std::size_t count = 0;
    while (count < units && within(first[count])) ++count;
    out_.records.insert(out_.records.end(), first, first + count);
    return count;
  }

  // Says why a record is not within its bounds.
  std::string fault_of(const Record& r) const {
    const Bound& bound = bounds_[static_cast<std::uint8_t>(r.kind)];
    const std::string at = std::string(name(r.kind)) + " of ";
    if (r.value >= bound.value)
      return at + "entry " + std::to_string(r.value) + ", where " + std::to_string(bound.value) +
             " are defined";
    return at + "communicator " + std::to_string(r.aux) + ", where " + std::to_string(bound.aux) +
           " are defined";
  }

  template <class T>
  std::string table(std::vector<T>& to, std::uint64_t index, const char* what,
                    bool (*decode)(const char*, const char*, T&), const char* begin,
                    const char* end) {
    T entry;
    if (!decode(begin, end, entry)) return std::string("a damaged ") + what;
    if (index < to.size() && std::is_same_v<T, Communicator>)
      return to[index] = std::move(entry), "";
    if (index != to.size())
      return std::string(what) + " " + std::to_string(index) + " where " +
             std::to_string(to.size()) + " was expected";
    to.push_back(std::move(entry));
    return "";
  }

  std::string define(const format::DefineUnit& head, const char* payload) {
    const char* end = payload + head.bytes;
    using format::Define;
    switch (head.what) {
      case Define::text:
        if (head.index != out_.strings.size()) return "strings out of order";
        out_.strings.push_back(base::visible({payload, head.bytes}));
        return "";
      case Define::op: {
        std::string fault = table(out_.ops, head.index, "op", &decode, payload, end);
        if (fault.empty()) out_.ops.back().name = base::visible(out_.ops.back().name);
        return fault;
      }
      case Define::graph: {
        std::string fault = table(out_.graphs, head.index, "graph", &decode, payload, end);
        if (!fault.empty()) return fault;
        nodes_ += out_.graphs.back().nodes.size();
        if (nodes_ > budget::graph_nodes)
          return "graphs of more than " + std::to_string(budget::graph_nodes) + " nodes";
        for (const auto& node : out_.graphs.back().nodes) {
          if (static_cast<std::uint8_t>(node.record.kind) > last_kind)
            return "a graph node of unknown kind";
          if (node.record.kind != Kind::none && !within(node.record)) return fault_of(node.record);
        }
        return "";
      }
      case Define::communicator:
        return table(out_.communicators, head.index, "communicator", &decode, payload, end);
      case Define::identity:
        if (!decode(payload, end, out_.identity)) return "a damaged identity";
        make_visible(out_.identity);
        return "";
      case Define::unimplemented:
        out_.unimplemented_calls.push_back({base::visible({payload, head.bytes}), head.index});
        return "";
      case Define::warning:
        out_.warnings.push_back({base::visible({payload, head.bytes}), head.index});
        return "";
      case Define::closed:
        out_.complete = true;
        return "";
    }
    return "unknown definition " + std::to_string(static_cast<int>(head.what));
  }

  // Strings of a recording are printed later and must not contain escape sequences.
  static void make_visible(Identity& identity) {
    for (std::string* text : {&identity.gpu, &identity.cluster, &identity.command})
      *text = base::visible(*text);
    for (auto* pairs : {&identity.environment, &identity.versions})
      for (auto& [name, value] : *pairs) name = base::visible(name), value = base::visible(value);
  }

  Recording& out_;
  std::size_t nodes_ = 0;
  std::array<Bound, 256> bounds_{};
};

// The tail as it is at one moment, or nothing if it does not belong after block `sequence`. Its
// writer may be at work: it marks the tail before it empties it, so a copy that was taken between
// two equal marks is whole. Checksums stand before the pieces and are copied first, by a call of
// their own since memcpy copies in any order, so that a piece with a checksum is a full one.
std::vector<char> copy_of_tail(const Mapping& tail, std::uint64_t session, std::uint64_t sequence) {
  format::TailHeader head;
  if (tail.data() == nullptr || tail.size() < sizeof head) return {};
  std::memcpy(&head, tail.data(), sizeof head);
  if (std::memcmp(head.magic, format::tail_magic, 8) != 0 &&
      std::memcmp(head.magic, format::old_tail_magic, 8) != 0)
    return {};
  if (head.session != session || head.sequence != sequence) return {};
  std::vector<char> copy(tail.size());
  const std::size_t before_pieces = std::min<std::size_t>(format::tail_begin, tail.size());
  std::memcpy(copy.data(), tail.data(), before_pieces);
  std::atomic_thread_fence(std::memory_order_acquire);
  std::memcpy(copy.data() + before_pieces, tail.data() + before_pieces,
              tail.size() - before_pieces);
  std::atomic_thread_fence(std::memory_order_acquire);
  std::memcpy(&head, tail.data(), sizeof head);
  if (head.sequence != sequence) return {};
  return copy;
}

// Checks the full pieces of a tail. Returns what is wrong, or an empty string. The records after
// the last full piece (about ten) have no checksum.
std::string unsealed(const std::vector<char>& tail) {
  if (tail.size() != format::tail_bytes) return "its size is wrong";
  const char* sums = tail.data() + sizeof(format::TailHeader);
  for (std::uint32_t piece = format::tail_begin / format::piece_bytes; piece < format::pieces;
       ++piece) {
    std::uint32_t sum = 0;
    std::memcpy(&sum, sums + piece * sizeof sum, sizeof sum);
    if (sum == 0) return "";
    if (sum != format::piece_checksum(tail.data(), piece))
      return "wrong checksum at byte " + std::to_string(piece * format::piece_bytes);
  }
  return "";
}

// Checks the limits of trace/budget.h. Returns which one is exceeded, or an empty string. The
// launch of a graph is one record but many operations; a wait for the device is one record but one
// wait per stream.
std::string excess(const Recording& recording, std::uint64_t file_bytes) {
  std::uint64_t operations = 0, waits = 0, streams = 0, blocking = 0, threads = 0;
  std::vector<bool> seen(1 << 16), seen_thread(1 << 16);
  for (const Record& record : recording.records) {
    if (record.kind == Kind::wide) continue;
    if (record.kind == Kind::graph_launch)
      operations += recording.graphs[record.value].nodes.size();
    else
      ++operations;
    if (!seen_thread[record.thread]) seen_thread[record.thread] = true, ++threads;
    if (!seen[record.stream]) {
      seen[record.stream] = true;
      ++streams;
      // Blocking streams, which synchronize with the default stream. Most programs create
      // non-blocking ones.
      blocking += !(record.flags & (Flag::legacy | Flag::non_blocking));
    }
    if (record.kind == Kind::device_synchronize || record.kind == Kind::release)
      waits += streams;
    else if (record.flags & Flag::legacy)
      waits += blocking;
  }
  if (operations > budget::operations + budget::operations_per_byte * file_bytes)
    return "its graph launches unfold to " + std::to_string(operations) + " operations";
  if (streams > budget::streams) return "it uses " + std::to_string(streams) + " streams";
  if (threads > budget::threads) return "it uses " + std::to_string(threads) + " threads";
  if (waits > budget::stream_waits + budget::operations_per_byte * file_bytes)
    return "it waits " + std::to_string(waits) + " times for one of its " +
           std::to_string(streams) + " streams";
  return "";
}

// The number of records according to the headers of the blocks, for one allocation up front. The
// headers are not trusted: the number is limited by what a file of this size can contain.
std::size_t announced_records(const Mapping& file, std::size_t position) {
  std::size_t raw = 0;
  format::BlockHeader block;
  while (file.size() - position >= sizeof block) {
    std::memcpy(&block, file.data() + position, sizeof block);
    if (block.magic != format::block_magic ||
        block.stored_bytes > file.size() - position - sizeof block)
      break;
    raw += block.raw_bytes;
    position += sizeof block + block.stored_bytes;
  }
  constexpr std::size_t plausible_compression = 64;
  return std::min(raw, file.size() * plausible_compression) / sizeof(Record);
}

}  // namespace

Result<Recording> read(const std::string& path, std::size_t enough_records) {
  Mapping file(path);
  auto error = [&](const std::string& what) { return Error{path + ": " + what}; };
  auto damaged = [&](const std::string& what) {
    return error("damaged" + what + "; record the run again");
  };
  if (file.data() == nullptr) return error("cannot read the recording: " + file.error());
  format::FileHeader header;
  if (file.size() < sizeof header)
    return error("too short to be a recording; record the run again");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, format::file_magic, 8) != 0)
    return error(
        "not a Maya recording (wrong magic number); name a directory that `maya run` made");
  if (header.version > format_version)
    return error("written by a newer Maya (format " + std::to_string(header.version) +
                 ", this one reads up to " + std::to_string(format_version) + "): update Maya");
  if (header.version == 0 || header.header_bytes < sizeof header ||
      header.header_bytes > file.size())
    return damaged(" header");

  Recording out;
  Assembler assembler(out);
  std::size_t position = header.header_bytes;
  std::uint64_t sequence = 0, raw_bytes = 0;
  std::vector<char> raw;
  const std::size_t announced = announced_records(file, position);
  out.records.reserve(enough_records == all_records ? announced
                                                    : std::min(announced, enough_records));
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  while (position < file.size() && out.records.size() < enough_records) {
    auto at = [&] {
      return " in block " + std::to_string(sequence) + " at byte " + std::to_string(position);
    };
    format::BlockHeader block;
    if (file.size() - position < sizeof block) break;  // the process was killed while writing
    std::memcpy(&block, file.data() + position, sizeof block);
    if (block.magic != format::block_magic || block.sequence != sequence)
      return damaged(at() + ": no block starts here");
    if (block.stored_bytes > file.size() - position - sizeof block) break;
    const char* stored = file.data() + position + sizeof block;
    if (block.raw_bytes > format::largest_block || block.raw_bytes % sizeof(Record) != 0)
      return damaged(at() + ": impossible size");
    if (format::checksum(stored, block.stored_bytes) != block.checksum)
      return damaged(at() + ": wrong checksum");
    raw_bytes += block.raw_bytes;
    if (raw_bytes > budget::unpacked_bytes &&
        raw_bytes / budget::most_compression > position + sizeof block + block.stored_bytes)
      return error("unpacks to more than " + std::to_string(budget::most_compression) +
                   " times its size, which is not plausible for a recording; not read");
    raw.resize(block.raw_bytes);
    std::size_t size =
        ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), stored, block.stored_bytes);
    if (ZSTD_isError(size) || size != block.raw_bytes) return damaged(at() + ": cannot decompress");
    if (std::string fault = assembler.take(raw.data(), raw.size(), false); !fault.empty())
      return damaged(at() + ": " + fault);
    position += sizeof block + block.stored_bytes;
    ++sequence;
  }

  std::vector<char> tail;
  std::string tail_path = path + ".tail";
  if (out.records.size() < enough_records && ::access(tail_path.c_str(), R_OK) == 0)
    tail = copy_of_tail(Mapping(tail_path), header.session, sequence);
  if (!tail.empty()) {
    format::TailHeader head;
    std::memcpy(&head, tail.data(), sizeof head);
    const bool sealed = std::memcmp(head.magic, format::tail_magic, 8) == 0;
    std::string fault = sealed ? unsealed(tail) : "";
    const std::size_t begin = sealed ? format::tail_begin : sizeof head;
    if (fault.empty() && tail.size() > begin)
      fault = assembler.take(tail.data() + begin, tail.size() - begin, true);
    if (const int reason = static_cast<int>(head.version >> 16); reason != 0)
      out.warnings.push_back(
          {std::string("the recording stops early: ") + std::strerror(reason), 1});
    if (!fault.empty())
      return Error{tail_path + ": damaged: " + fault + "; remove it to read the part before it"};
  }
  if (const std::string what = excess(out, file.size() + tail.size()); !what.empty())
    return error(what + ", which is not plausible for a file of this size; not read");
  if (out.records.empty() && out.identity.pid == 0)
    return error("the recording is empty: the process ended before it used the device");
  return out;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "none";
    case Kind::host_gap:
      return "host_gap";
    case Kind::wide:
      return "wide";
    case Kind::launch:
      return "launch";
    case Kind::copy:
      return "copy";
    case Kind::fill:
      return "fill";
    case Kind::collective:
      return "collective";
    case Kind::point_to_point:
      return "point_to_point";
    case Kind::group_begin:
      return "group_begin";
    case Kind::group_end:
      return "group_end";
    case Kind::host_function:
      return "host_function";
    case Kind::graph_launch:
      return "graph_launch";
    case Kind::event_record:
      return "event_record";
    case Kind::stream_wait_event:
      return "stream_wait_event";
    case Kind::event_synchronize:
      return "event_synchronize";
    case Kind::event_query:
      return "event_query";
    case Kind::stream_synchronize:
      return "stream_synchronize";
    case Kind::device_synchronize:
      return "device_synchronize";
    case Kind::stream_create:
      return "stream_create";
    case Kind::stream_destroy:
      return "stream_destroy";
    case Kind::allocate:
      return "allocate";
    case Kind::release:
      return "release";
    case Kind::communicator_create:
      return "communicator_create";
    case Kind::communicator_destroy:
      return "communicator_destroy";
    case Kind::range_push:
      return "range_push";
    case Kind::range_pop:
      return "range_pop";
    case Kind::mark:
      return "mark";
    case Kind::step_boundary:
      return "step_boundary";
    case Kind::out_of_memory:
      return "out_of_memory";
    case Kind::tensor_allocate:
      return "tensor_allocate";
    case Kind::tensor_release:
      return "tensor_release";
  }
  return "unknown";
}

}  // namespace maya::trace
