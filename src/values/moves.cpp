#include "values/moves.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "values/operand.h"

namespace maya::values {
namespace {

std::uint64_t moved(std::uint64_t address, std::int64_t by) {
  return address + static_cast<std::uint64_t>(by);
}

// Byte offsets that the indices add to each element of the iteration.
std::optional<std::vector<std::int64_t>> displacements(const Semantics& s, std::size_t first,
                                                       std::int64_t n, KnownBytes& values,
                                                       std::uint64_t limit) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::size_t k = first; k < s.inputs.size(); ++k) {
    if (k - first >= s.steps.size()) return std::nullopt;
    auto index = load(s.inputs[k], values, limit);
    if (!index || static_cast<std::int64_t>(index->size()) < n) return std::nullopt;
    const auto& step = s.steps[k - first];
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto at = static_cast<std::int64_t>((*index)[i]);
      if (at < 0) at += step.size;
      if (at < 0 || at >= step.size) return std::nullopt;
      out[i] += at * step.stride;
    }
  }
  return out;
}

void gather(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  const Operand &out = s.outputs.at(0), &in = s.inputs.at(0);
  std::int64_t n = count(out), element = bits(out.dtype) / 8;
  if (n <= 0) return;
  Range reach = range(in);
  for (const auto& step : s.steps)
    reach.high += std::max<std::int64_t>(0, (step.size - 1) * step.stride);
  bool source =
      values.any(moved(in.address, reach.low), static_cast<std::uint64_t>(reach.high - reach.low));
  // Of equals, any is as good: the indices need not be known.
  std::uint64_t width = 0;
  const void* pattern =
      source ? nullptr
             : values.supposed(moved(in.address, reach.low),
                               static_cast<std::uint64_t>(reach.high - reach.low), width);
  if (pattern != nullptr && width == static_cast<std::uint64_t>(element) && dense(out) &&
      n <= most_supposed)
    return values.suppose(out.address, pattern, width, static_cast<std::uint64_t>(n) * width);
  if (!source || n * element > static_cast<std::int64_t>(limit) || count(in) < n)
    return forget(out, values);
  auto displaced = displacements(s, 1, n, values, limit);
  if (!displaced) return forget(out, values);
  std::vector<char> data(static_cast<std::size_t>(n * element));
  std::vector<bool> known(static_cast<std::size_t>(n));
  bool all = true;
  for (std::int64_t i = 0; i < n; ++i) {
    auto k = static_cast<std::size_t>(i);
    const void* p = values.known(moved(in.address, offset(in, i) + (*displaced)[k]),
                                 static_cast<std::uint64_t>(element));
    known[k] = p != nullptr;
    all = all && known[k];
    if (p != nullptr) std::memcpy(data.data() + i * element, p, static_cast<std::size_t>(element));
  }
  bool straight = true;
  for (std::int64_t i = 0; all && straight && i < n; ++i) straight = offset(out, i) == i * element;
  if (all && straight) return values.store(out.address, data.data(), data.size());
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint64_t to = moved(out.address, offset(out, i));
    if (known[static_cast<std::size_t>(i)])
      values.store(to, data.data() + i * element, static_cast<std::uint64_t>(element));
    else
      values.forget(to, static_cast<std::uint64_t>(element));
  }
}

std::optional<Number> combine(const std::string& f, Number a, Number b) {
  if (f == "add") return a + b;
  if (f == "mul") return a * b;
  if (f == "max") return std::max(a, b);
  if (f == "min") return std::min(a, b);
  return std::nullopt;
}

void scatter(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  const Operand& out = s.outputs.at(0);
  std::int64_t n = count(out), element = bits(out.dtype) / 8;
  if (n <= 0) return;
  Range reach = range(out);
  for (const auto& step : s.steps)
    reach.high += std::max<std::int64_t>(0, (step.size - 1) * step.stride);
  auto forget_all = [&] {
    values.forget(moved(out.address, reach.low),
                  static_cast<std::uint64_t>(reach.high - reach.low));
  };
  std::size_t first = s.from_constant ? 0 : 1;
  const Operand* from = s.from_constant ? nullptr : &s.inputs.at(0);
  if (n * element > static_cast<std::int64_t>(limit) || element > 16) return forget_all();
  auto displaced = displacements(s, first, n, values, limit);
  if (!displaced) return forget_all();
  // A promise is all or nothing: what is written in parts must be there first.
  values.any_settled(moved(out.address, reach.low),
                     static_cast<std::uint64_t>(reach.high - reach.low));
  auto size = static_cast<std::uint64_t>(element);
  for (std::int64_t i = 0; i < n; ++i) {
    const void* p = from == nullptr ? s.constant.data()
                                    : values.known(moved(from->address, offset(*from, i)), size);
    std::uint64_t to =
        moved(out.address, offset(out, i) + (*displaced)[static_cast<std::size_t>(i)]);
    char item[16];
    bool known = p != nullptr;
    if (known) std::memcpy(item, p, size);
    if (known && s.function != "assign") {
      const void* old = values.known(to, size);
      auto b = read(out.dtype, item);
      auto a = old != nullptr ? read(out.dtype, static_cast<const char*>(old)) : std::nullopt;
      auto sum = a && b ? combine(s.function, *a, *b) : std::nullopt;
      known = sum && write(out.dtype, item, *sum);
    }
    if (known)
      values.store(to, item, size);
    else
      values.forget(to, size);
  }
}

// The first output is as long as the second says; a program allocates no more.
//
// An unknown mask is taken to choose every place. Programs that let values decide a shape mostly
// filter lightly and then cut to a fixed number (detectors: small boxes, overlaps, the best
// thousand; samplers: so many of each kind), so all of them gives the shapes of a real step, where
// none would leave out half of the model. Unknown numbers are taken to differ from each other;
// those too many to follow are labels of pixels or words, of which few differ: one does.
Number different(std::int64_t n, std::uint64_t limit) {
  return n * 8 > static_cast<std::int64_t>(limit) ? Number(n > 0) : static_cast<Number>(n);
}

void list(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  auto in = load(s.inputs.at(0), values, limit);
  Column found;
  if (in) {
    for (std::size_t i = 0; i < in->size(); ++i) {
      if (s.kind == Semantics::Kind::unique) {
        if (i == 0 || (*in)[i] != (*in)[i - 1]) found.push_back((*in)[i]);
      } else if ((*in)[i] != 0) {
        found.push_back(static_cast<Number>(i));
      }
    }
    Operand out = s.outputs.at(0);
    out.size[0] = static_cast<std::int64_t>(found.size());
    if (!found.empty()) store(out, found, values, limit);
  } else if (s.kind == Semantics::Kind::nonzero_write) {
    const Operand& out = s.outputs.at(0);
    auto places = count(s.inputs[0]);
    if (places * bits(out.dtype) / 8 <= static_cast<std::int64_t>(limit)) {
      found.resize(static_cast<std::size_t>(std::max<std::int64_t>(places, 0)));
      std::iota(found.begin(), found.end(), Number{0});
      store(out, found, values, limit);
    } else {
      forget(out, values);
    }
  } else {
    // How much was written is unknown too: at most the input's length, at least the known bytes
    // there.
    values.forget_from(s.outputs.at(0).address);
  }
  if (s.outputs.size() < 2 || s.outputs[1].address == 0) return;
  if (s.kind == Semantics::Kind::nonzero_write && !in)
    store(s.outputs[1], {static_cast<Number>(count(s.inputs[0]))}, values, limit);
  else if (in)
    store(s.outputs[1], {static_cast<Number>(found.size())}, values, limit);
  else
    store(s.outputs[1], {different(count(s.inputs[0]), limit)}, values, limit);
  // Run lengths beside the values.
  if (s.outputs.size() < 3) return;
  Column lengths;
  if (!in) {
    auto n = count(s.inputs[0]);
    auto runs = static_cast<std::size_t>(different(n, limit));
    if (runs > 0) lengths.assign(runs, static_cast<Number>(n) / static_cast<Number>(runs));
    values.forget_from(s.outputs[2].address);
  }
  for (std::size_t i = 0; in && i < in->size(); ++i) {
    if (i == 0 || (*in)[i] != (*in)[i - 1]) lengths.push_back(0);
    lengths.back() += 1;
  }
  Operand runs = s.outputs[2];
  runs.size[0] = static_cast<std::int64_t>(lengths.size());
  store(runs, lengths, values, limit);
}

void repeat(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  auto times = load(s.inputs.at(0), values, limit), ends = load(s.inputs.at(1), values, limit);
  const Operand& out = s.outputs.at(0);
  Column result(static_cast<std::size_t>(
      std::clamp<std::int64_t>(count(out), 0, static_cast<std::int64_t>(limit))));
  if (!times || !ends || times->size() != ends->size()) return forget(out, values);
  auto place = [&](Number number) {
    return static_cast<std::size_t>(
        std::clamp(number, Number{0}, static_cast<Number>(result.size())));
  };
  for (std::size_t i = 0; i < times->size(); ++i)
    for (std::size_t at = place((*ends)[i] - (*times)[i]); at < place((*ends)[i]); ++at)
      result[at] = static_cast<Number>(i);
  store(out, result, values, limit);
}

void unravel(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  Operand line = s.outputs.at(0), all = line;
  int rank = line.rank;
  line.rank = all.rank = 1;
  line.size[0] = s.k, all.size[0] = s.k * rank;
  line.stride[0] = all.stride[0] = bits(line.dtype) / 8;
  auto in = load(line, values, limit);
  if (!in) return forget(all, values);
  Column result(in->size() * static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < in->size(); ++i) {
    auto rest = static_cast<std::int64_t>((*in)[i]);
    for (int d = 0; d < rank; ++d) {  // the fastest dimension first, its row last
      std::int64_t size = std::max<std::int64_t>(1, s.outputs[0].size[d]);
      result[i + static_cast<std::size_t>(rank - 1 - d) * in->size()] =
          static_cast<Number>(rest % size);
      rest /= size;
    }
  }
  store(all, result, values, limit);
}

void differences(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  auto in = load(s.inputs.at(0), values, limit);
  auto n = count(s.inputs[0]);
  Column result(in ? in->size() : static_cast<std::size_t>(different(n, limit)));
  if (!in && static_cast<std::int64_t>(result.size()) != n) return forget(s.outputs.at(0), values);
  for (std::size_t i = 1; i < result.size(); ++i) result[i] = !in || (*in)[i] != (*in)[i - 1];
  store(s.outputs.at(0), result, values, limit);
}

// GradScaler: gradients nobody computed count as finite, so the scale stays and the tracker counts
// up.
void loss_scale(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  auto scale = load(s.outputs.at(0), values, limit), tracker = load(s.outputs.at(1), values, limit);
  auto found = load(s.inputs.at(0), values, limit);
  if (!scale || !tracker) return forget(s.outputs[0], values), forget(s.outputs[1], values);
  if (found && (*found)[0] != 0) {
    (*scale)[0] *= s.scalar2;
    (*tracker)[0] = 0;
  } else if ((*tracker)[0] += 1; (*tracker)[0] == static_cast<Number>(s.k)) {
    (*scale)[0] *= s.scalar;
    (*tracker)[0] = 0;
  }
  store(s.outputs[0], *scale, values, limit);
  store(s.outputs[1], *tracker, values, limit);
}

}  // namespace

bool move(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  using Kind = Semantics::Kind;
  std::size_t inputs = 1, outputs = 1;
  if (s.kind == Kind::repeat) inputs = 2;
  if (s.kind == Kind::scatter && s.from_constant) inputs = 0;
  if (s.kind == Kind::unravel) inputs = 0;
  if (s.kind == Kind::loss_scale) outputs = 2;
  bool complete = s.inputs.size() >= inputs && s.outputs.size() >= outputs;
  switch (s.kind) {
    case Kind::gather:
      return complete ? gather(s, values, limit), true : false;
    case Kind::scatter:
      return complete ? scatter(s, values, limit), true : false;
    case Kind::nonzero_write:
    case Kind::unique:
      return complete ? list(s, values, limit), true : false;
    case Kind::repeat:
      return complete ? repeat(s, values, limit), true : false;
    case Kind::unravel:
      return complete ? unravel(s, values, limit), true : false;
    case Kind::differences:
      return complete ? differences(s, values, limit), true : false;
    case Kind::loss_scale:
      return complete ? loss_scale(s, values, limit), true : false;
    default:
      return false;
  }
}

}  // namespace maya::values
