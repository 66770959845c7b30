#include <cstring>
#include <optional>
#include <string_view>

#include "session/calls.h"
#include "session/host_memory.h"
#include "values/constant.h"

namespace maya::session {
namespace {

bool on_device(Where w) { return w == Where::device || w == Where::managed; }

std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// Objects that programs send each other travel as bytes of a pickle (its protocol in front, a full
// stop at the end) or of torch.save's zip, and are read back whole. Weights are as large, and
// nobody looks at them.
bool serialized(const void* from, std::uint64_t size) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 30;
  if (size < 4 || size > largest) return false;
  const std::string_view bytes(static_cast<const char*>(from), size);
  const bool pickle = bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 && bytes.back() == '.';
  return pickle || bytes.substr(0, 4) == "PK\x03\x04";
}

// Moves what is known of one row. Host memory is real; device memory is where values live.
void move_row(void* to, Where to_where, const void* from, Where from_where, std::uint64_t bytes) {
  State& s = state();
  if (on_device(to_where)) {
    if (on_device(from_where)) {
      s.values.copy(address(to), address(from), bytes);
    } else if (bytes <= s.settings.value_limit || serialized(from, bytes)) {
      s.values.store(address(to), from, bytes);
    } else {
      s.values.forget(address(to), bytes);
    }
  } else if (on_device(from_where)) {
    if (!s.values.load(to, address(from), bytes))
      s.recorder.warning("host reads of unknown device bytes (answered with zeros)");
  } else if (to != from) {
    std::memmove(to, from, bytes);
  }
}

// Bytes from the first to behind the last one that an area touches; nothing if there are more than
// addresses. Sizes are whatever the program passed: -1 is a large number.
std::optional<std::uint64_t> span(std::uint64_t width, std::uint64_t height, std::uint64_t depth,
                                  std::uint64_t pitch, std::uint64_t slice) {
  std::uint64_t rows = 0, slices = 0, sum = 0;
  if (__builtin_mul_overflow(pitch, height - 1, &rows) ||
      __builtin_mul_overflow(depth > 1 ? slice : 0, depth - 1, &slices) ||
      __builtin_add_overflow(rows, slices, &sum) || __builtin_add_overflow(sum, width, &sum) ||
      sum > std::uint64_t{1} << 47)
    return std::nullopt;
  return sum;
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b, std::uint64_t c = 1) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out) || __builtin_mul_overflow(out, c, &out) ||
      out > std::uint64_t{1} << 47)
    return std::nullopt;
  return out;
}

// Device memory that is allocated, or host memory that is somebody's.
bool accessible(const void* p, Where w, std::uint64_t bytes) {
  if (w == Where::pinned) {
    std::uint64_t base = 0, size = 0;
    if (pinned_range(p, base, size) && bytes <= base + size - address(p)) return true;
  }
  return on_device(w) ? state().memory.extent(address(p)) >= bytes : mapped(p, bytes);
}

// Of more rows with gaps nothing is known afterwards: going through all rows of a device's memory
// would take minutes.
constexpr std::uint64_t most_rows = 1 << 20;

void move_area(const Area& a, Where to, Where from, std::uint64_t to_span) {
  State& s = state();
  // Rows without gaps are one row.
  if (a.to_pitch == a.width && a.from_pitch == a.width && a.depth == 1)
    return move_row(a.to, to, a.from, from, a.width * a.height);
  if (a.height > most_rows / a.depth && on_device(to)) {
    s.values.forget(address(a.to), to_span);
    return;
  }
  for (std::uint64_t z = 0; z < a.depth; ++z)
    for (std::uint64_t y = 0; y < a.height; ++y)
      move_row(static_cast<char*>(a.to) + z * a.to_slice + y * a.to_pitch, to,
               static_cast<const char*>(a.from) + z * a.from_slice + y * a.from_pitch, from,
               a.width);
}

void fill_rows(void* to, std::uint64_t pitch, unsigned value, std::uint32_t element,
               std::uint64_t width, std::uint64_t height, std::uint64_t reach) {
  State& s = state();
  const Where target = where(to);
  if (height > most_rows && on_device(target)) {
    s.values.forget(address(to), reach);
    return;
  }
  for (std::uint64_t y = 0; y < height; ++y) {
    char* row = static_cast<char*>(to) + y * pitch;
    if (on_device(target)) {
      // Large fills are gradients and buffers: nobody looks, and zero is what unknown bytes read
      // as. Those between are masks, or nobody looks.
      if (width <= s.settings.value_limit / 16)
        s.values.fill(address(row), &value, element, width);
      else if (width <= s.settings.integer_limit() && (element == 1 || value == 0))
        s.values.promise(address(row), width,
                         std::make_shared<values::Constant>(static_cast<std::uint8_t>(value)));
      else
        s.values.forget(address(row), width);
    } else {
      for (std::uint64_t i = 0; i + element <= width; i += element)
        std::memcpy(row + i, &value, element);
    }
  }
}

}  // namespace

int copy(const Area& a, void* stream_handle, bool async) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  const auto total = product(a.width, a.height, a.depth);
  if (!total) return code::invalid_value;
  const std::uint64_t bytes = *total;
  if (bytes == 0) return code::success;
  if (a.to == nullptr || a.from == nullptr) return code::invalid_value;
  Where to = where(a.to), from = where(a.from);
  const auto to_span = span(a.width, a.height, a.depth, a.to_pitch, a.to_slice);
  const auto from_span = span(a.width, a.height, a.depth, a.from_pitch, a.from_slice);
  if (!to_span || !from_span || !accessible(a.to, to, *to_span) ||
      !accessible(a.from, from, *from_span))
    return code::invalid_value;
  State& s = state();
  if (!async && stream->capture == nullptr)
    if (int error = check_unsafe()) return error;

  Copy op;
  op.bytes = static_cast<std::int64_t>(bytes);
  bool pageable = to == Where::pageable || from == Where::pageable;
  op.pinned = !pageable;
  if (on_device(to) && on_device(from)) {
    const bool peer = s.memory.apart(address(a.to), address(a.from));
    op.direction = peer ? CopyDirection::peer : CopyDirection::device;
  } else if (on_device(to)) {
    op.direction = CopyDirection::host_to_device;
  } else if (on_device(from)) {
    op.direction = CopyDirection::device_to_host;
  } else {
    op.direction = CopyDirection::host;
  }
  // A copy to pageable memory returns when it is done, and so does every call without "Async" that
  // involves the host; a device-to-device copy does not.
  bool host_involved = op.direction != CopyDirection::device && op.direction != CopyDirection::peer;
  bool blocking =
      host_involved && (!async || (pageable && op.direction == CopyDirection::device_to_host));
  if (stream->capture != nullptr && blocking && !async) {
    stream->capture->invalidated = true;
    return code::capture_unsupported;
  }
  std::uint32_t number = s.recorder.op(op, async ? "cudaMemcpyAsync" : "cudaMemcpy");
  if (int error = enqueue(*stream, trace::Kind::copy, number, blocking ? trace::Flag::blocking : 0,
                          0, NodeType::memcpy))
    return error;
  if (blocking && stream->capture == nullptr) stream_reached(*stream);
  if (stream->capture != nullptr)
    capture_moves(*stream, [=] {
      // Memory of the host may be gone by now; the program's fault, but not ours to crash on.
      if (accessible(a.to, to, *to_span) && accessible(a.from, from, *from_span))
        move_area(a, to, from, *to_span);
    });
  else
    move_area(a, to, from, *to_span);
  if (blocking && stream->capture == nullptr) attend_meetings();
  return code::success;
}

int fill(void* to, std::uint64_t pitch, unsigned value, std::uint32_t element, std::uint64_t width,
         std::uint64_t height, void* stream_handle, bool async) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  const auto total = product(width, height);
  if (!total) return code::invalid_value;
  const std::uint64_t bytes = *total;
  if (bytes == 0) return code::success;
  State& s = state();
  Where target = where(to);
  const auto reach = span(width, height, 1, pitch, 0);
  // Documented for device memory; memory of the host that nobody pinned is none.
  if (to == nullptr || !reach || target == Where::pageable || !accessible(to, target, *reach) ||
      (height > 1 && pitch < width))
    return code::invalid_value;
  std::uint32_t number = s.recorder.op(Fill{static_cast<std::int64_t>(bytes)},
                                       async ? "cudaMemsetAsync" : "cudaMemset");
  if (int error = enqueue(*stream, trace::Kind::fill, number, 0, 0, NodeType::memset)) return error;
  if (stream->capture != nullptr)
    capture_moves(*stream, [=] { fill_rows(to, pitch, value, element, width, height, *reach); });
  else
    fill_rows(to, pitch, value, element, width, height, *reach);
  return code::success;
}

bool read_device(void* to, const void* from, std::size_t bytes) {
  if (!mapped(to, bytes)) return false;
  return state().values.load(to, address(from), bytes);
}

void write_device(void* to, const void* from, std::size_t bytes) {
  state().values.store(address(to), from, bytes);
}

int write_on_stream(void* handle, void* to, const void* from, std::size_t bytes) {
  Stream* stream = nullptr;
  if (int error = find_stream(handle, stream)) return error;
  write_device(to, from, bytes);
  return code::success;
}

bool is_device_pointer(const void* p) { return state().memory.owns(address(p)); }

}  // namespace maya::session
