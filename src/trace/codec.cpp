#include "trace/codec.h"

#include <utility>

namespace maya::trace {
namespace {

// The largest enumerator of each enum in maya/op.h. A decoded value above it means that the file is
// damaged.
template <class E>
constexpr std::uint64_t last_enumerator() {
  if constexpr (std::is_same_v<E, DType>) return static_cast<std::uint64_t>(DType::c128);
  if constexpr (std::is_same_v<E, Direction>)
    return static_cast<std::uint64_t>(Direction::weight_gradient);
  if constexpr (std::is_same_v<E, Epilogue>) return static_cast<std::uint64_t>(Epilogue::other);
  if constexpr (std::is_same_v<E, Layout>) return static_cast<std::uint64_t>(Layout::channels_last);
  if constexpr (std::is_same_v<E, AttentionKernel>)
    return static_cast<std::uint64_t>(AttentionKernel::other);
  if constexpr (std::is_same_v<E, NormKind>) return static_cast<std::uint64_t>(NormKind::l2);
  if constexpr (std::is_same_v<E, ReduceKind>) return static_cast<std::uint64_t>(ReduceKind::other);
  if constexpr (std::is_same_v<E, OptimizerKind>)
    return static_cast<std::uint64_t>(OptimizerKind::other);
  if constexpr (std::is_same_v<E, CopyDirection>)
    return static_cast<std::uint64_t>(CopyDirection::host);
  if constexpr (std::is_same_v<E, CollectiveKind>)
    return static_cast<std::uint64_t>(CollectiveKind::barrier);
  if constexpr (std::is_same_v<E, ReduceOp>) return static_cast<std::uint64_t>(ReduceOp::other);
  if constexpr (std::is_same_v<E, CollectiveLibrary>)
    return static_cast<std::uint64_t>(CollectiveLibrary::trtllm);
  if constexpr (std::is_same_v<E, ExpertsPart>)
    return static_cast<std::uint64_t>(ExpertsPart::second);
  if constexpr (std::is_same_v<E, Loops>) return static_cast<std::uint64_t>(Loops::unknown);
}

struct FieldWriter {
  Encoder& out;
  template <class T>
  void operator()(const char*, const T& v) {
    if constexpr (std::is_same_v<T, double>)
      out.real(v);
    else
      out.integer(static_cast<std::int64_t>(v));
  }
};

struct FieldReader {
  Decoder& in;
  template <class T>
  void operator()(const char*, T& v) {
    if constexpr (std::is_same_v<T, double>) {
      v = in.real();
    } else if constexpr (std::is_enum_v<T>) {
      std::int64_t raw = in.integer();
      if (raw < 0 || static_cast<std::uint64_t>(raw) > last_enumerator<T>()) in.fail();
      v = in.ok() ? static_cast<T>(raw) : T{};
    } else if constexpr (std::is_same_v<T, bool>) {
      v = in.integer() != 0;
    } else {
      std::int64_t raw = in.integer();
      v = static_cast<T>(raw);
      if (static_cast<std::int64_t>(v) != raw) in.fail();
    }
  }
};

struct FieldHash {
  std::uint64_t h;
  void add(std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 32;
  }
  template <class T>
  void operator()(const char*, const T& v) {
    if constexpr (std::is_same_v<T, double>) {
      std::uint64_t raw;
      std::memcpy(&raw, &v, 8);
      add(raw);
    } else {
      add(static_cast<std::uint64_t>(v));
    }
  }
};

template <std::size_t... I>
bool emplace(Work& work, std::size_t index, std::index_sequence<I...>) {
  return ((index == I ? (work.emplace<I>(), true) : false) || ...);
}

}  // namespace

std::uint64_t hash(const Work& work, std::string_view name) {
  FieldHash h{0x51ed270b7a3c9f11ULL + work.index()};
  std::visit([&](const auto& w) { w.each(w, h); }, work);
  for (char c : name) h.add(static_cast<unsigned char>(c));
  return h.h;
}

void encode(const Op& op, std::string& out) {
  Encoder e(out);
  e.unsigned_integer(op.work.index());
  // The number of fields is stored so that a newer reader can read an older recording: missing
  // fields keep their defaults.
  std::string fields;
  Encoder inner(fields);
  std::visit([&](const auto& w) { w.each(w, FieldWriter{inner}); }, op.work);
  e.text(fields);
  e.text(op.name);
  for (auto v : op.geometry.grid) e.unsigned_integer(v);
  for (auto v : op.geometry.block) e.unsigned_integer(v);
  e.unsigned_integer(op.geometry.shared_bytes);
  e.unsigned_integer(op.geometry.registers);
}

bool decode(const char* begin, const char* end, Op& op) {
  Decoder d(begin, end);
  std::uint64_t kind = d.unsigned_integer();
  if (!d.ok() || !emplace(op.work, kind, std::make_index_sequence<std::variant_size_v<Work>>()))
    return false;
  std::string fields = d.text();
  Decoder inner(fields.data(), fields.data() + fields.size());
  std::visit(
      [&](auto& w) {
        w.each(w, [&](const char* name, auto& v) {
          if (!inner.done()) FieldReader{inner}(name, v);
        });
      },
      op.work);
  op.name = d.text();
  for (auto& v : op.geometry.grid) v = static_cast<std::uint32_t>(d.unsigned_integer());
  for (auto& v : op.geometry.block) v = static_cast<std::uint32_t>(d.unsigned_integer());
  op.geometry.shared_bytes = static_cast<std::uint32_t>(d.unsigned_integer());
  op.geometry.registers = static_cast<std::uint16_t>(d.unsigned_integer());
  return d.ok() && inner.ok();
}

void encode(const Graph& graph, std::string& out) {
  Encoder e(out);
  e.unsigned_integer(graph.nodes.size());
  for (const auto& node : graph.nodes) {
    e.bytes(&node.record, sizeof node.record);
    e.unsigned_integer(node.after.size());
    for (auto v : node.after) e.unsigned_integer(v);
  }
}

bool decode(const char* begin, const char* end, Graph& graph) {
  Decoder d(begin, end);
  std::uint64_t count = d.unsigned_integer();
  if (count > d.left() / sizeof(Record)) return false;
  graph.nodes.resize(count);
  for (std::size_t i = 0; i < count && d.ok(); ++i) {
    auto& node = graph.nodes[i];
    d.bytes(&node.record, sizeof node.record);
    std::uint64_t edges = d.unsigned_integer();
    if (edges > d.left()) return false;
    node.after.resize(edges);
    for (auto& v : node.after) {
      std::uint64_t before = d.unsigned_integer();
      if (before >= i) return false;  // topological order, so no cycles
      v = static_cast<std::uint32_t>(before);
    }
  }
  return d.ok();
}

void encode(const Communicator& c, std::string& out) {
  Encoder e(out);
  e.unsigned_integer(c.id), e.integer(c.rank), e.integer(c.size), e.unsigned_integer(c.parent);
  e.text(c.name);
  e.unsigned_integer(c.ranks.size());
  for (auto rank : c.ranks) e.integer(rank);
}

bool decode(const char* begin, const char* end, Communicator& c) {
  Decoder d(begin, end);
  c.id = d.unsigned_integer();
  std::int64_t rank = d.integer(), size = d.integer();
  c.parent = d.unsigned_integer();
  c.name = d.text();
  if (!d.ok() || size < 1 || size > (1 << 24) || rank < 0 || rank >= size) return false;
  c.rank = static_cast<std::int32_t>(rank), c.size = static_cast<std::int32_t>(size);
  if (d.left() == 0) return true;  // an older recording without members
  const std::uint64_t count = d.unsigned_integer();
  if (count != 0 && (count != static_cast<std::uint64_t>(size) || count > d.left())) return false;
  c.ranks.resize(count);
  for (auto& member : c.ranks) {
    const std::int64_t value = d.integer();
    if (value < 0 || value > 1 << 24) return false;
    member = static_cast<std::int32_t>(value);
  }
  return d.ok();
}

void encode(const Identity& i, std::string& out) {
  Encoder e(out);
  e.integer(i.rank), e.integer(i.local_rank), e.integer(i.world_size), e.integer(i.node);
  e.integer(i.device), e.unsigned_integer(i.pid);
  e.text(i.gpu), e.text(i.cluster), e.text(i.command);
  e.unsigned_integer(i.memory_capacity), e.unsigned_integer(i.memory_context);
  for (const auto* pairs : {&i.environment, &i.versions}) {
    e.unsigned_integer(pairs->size());
    for (const auto& [key, value] : *pairs) e.text(key), e.text(value);
  }
}

bool decode(const char* begin, const char* end, Identity& i) {
  Decoder d(begin, end);
  auto small = [&] {
    std::int64_t v = d.integer();
    if (v < -1 || v > (1 << 24)) d.fail();
    return static_cast<std::int32_t>(v);
  };
  i.rank = small(), i.local_rank = small(), i.world_size = small(), i.node = small();
  i.device = small(), i.pid = d.unsigned_integer();
  i.gpu = d.text(), i.cluster = d.text(), i.command = d.text();
  i.memory_capacity = d.unsigned_integer(), i.memory_context = d.unsigned_integer();
  constexpr std::uint64_t most_memory = std::uint64_t{1} << 50;
  if (i.world_size < 1 || i.memory_capacity > most_memory || i.memory_context > most_memory)
    return false;
  for (auto* pairs : {&i.environment, &i.versions}) {
    std::uint64_t n = d.unsigned_integer();
    if (n > d.left()) return false;
    pairs->clear();
    for (std::uint64_t k = 0; k < n; ++k) {
      std::string key = d.text();
      pairs->emplace_back(std::move(key), d.text());
    }
  }
  return d.ok();
}

}  // namespace maya::trace
