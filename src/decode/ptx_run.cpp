#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "decode/ptx.h"

namespace maya::decode::ptx {
namespace {

struct Value {
  std::uint64_t bits{};
  bool known{};
  std::int16_t root{-1};  // kernel parameter the address came from
};

constexpr int max_roots = 64;

struct Traffic {
  double bytes{};  // moved, every access counted
  double blind{};  // of these, at addresses that depend on data
  std::uint64_t low{std::numeric_limits<std::uint64_t>::max()}, high{};
};

struct Counts {
  std::array<Traffic, max_roots + 1> read, written;
  double bulk_read{}, bulk_written{};
  double flops{}, tensor_flops{};
  bool exact{true};
  bool complete{true};  // false: the step limit cut it off

  // As if what happened since `before` happened `times` more.
  void advance(const Counts& before, double times) {
    auto side = [times](auto& now, const auto& then) {
      for (std::size_t i = 0; i < now.size(); ++i) {
        now[i].bytes += (now[i].bytes - then[i].bytes) * times;
        now[i].blind += (now[i].blind - then[i].blind) * times;
      }
    };
    side(read, before.read);
    side(written, before.written);
    bulk_read += (bulk_read - before.bulk_read) * times;
    bulk_written += (bulk_written - before.bulk_written) * times;
    flops += (flops - before.flops) * times;
    tensor_flops += (tensor_flops - before.tensor_flops) * times;
  }
};

// What one thread did, for comparing threads and blocks.
struct Summary {
  double read{}, written{}, bulk{}, flops{}, tensor_flops{};
  bool operator==(const Summary&) const = default;
  Summary operator-(const Summary& o) const {
    return {read - o.read, written - o.written, bulk - o.bulk, flops - o.flops,
            tensor_flops - o.tensor_flops};
  }
  Summary operator+(const Summary& o) const {
    return {read + o.read, written + o.written, bulk + o.bulk, flops + o.flops,
            tensor_flops + o.tensor_flops};
  }
  Summary operator*(double f) const {
    return {read * f, written * f, bulk * f, flops * f, tensor_flops * f};
  }
};

class Thread {
 public:
  Thread(const Program& program, const Launch& launch, const std::vector<Value>& arguments,
         std::uint64_t limit)
      : program_(program),
        launch_(launch),
        arguments_(arguments),
        registers_(program.registers),
        compared_(program.registers),
        limit_(limit) {}

  std::uint64_t steps() const { return steps_; }

  // `weight`: threads this one stands for; `elected_weight`: blocks, for work that one thread of a
  // warp issues for all (bulk copies, tcgen05): the sample holds every warp's first lane.
  Summary run(const std::array<std::uint32_t, 3>& block, const std::array<std::uint32_t, 3>& thread,
              double weight, double elected_weight, Counts& counts) {
    block_ = block;
    thread_ = thread;
    weight_ = weight;
    elected_weight_ = elected_weight;
    loops_.clear();
    counts_ = &counts;
    summary_ = {};
    std::fill(registers_.begin(), registers_.end(), Value{});
    std::uint64_t begin = steps_;
    std::size_t at = 0;
    while (at < program_.code.size()) {
      if (steps_ - begin > limit_) {
        counts.exact = counts.complete = false;
        break;
      }
      ++steps_;
      const Instruction& in = program_.code[at];
      bool certain = true;
      if (in.predicate >= 0) {
        const Value& p = registers_[in.predicate];
        certain = p.known;
        if (certain && ((p.bits & 1) != 0) == in.predicate_negated) {
          if (in.code == Code::branch && in.target >= 0 &&
              static_cast<std::size_t>(in.target) <= at)
            leave(at);
          ++at;
          continue;
        }
      }
      if (in.code == Code::exit) {
        if (certain) break;
        ++at;
        continue;
      }
      if (in.code == Code::branch) {
        if (!certain) counts.exact = false;
        if (certain && in.target >= 0) {
          auto target = static_cast<std::size_t>(in.target);
          if (target <= at && in.predicate >= 0) accelerate(at, target, in);
          at = target;
        } else {
          ++at;
        }
        continue;
      }
      if (in.code == Code::branch_indexed) {
        counts.exact = false;
        break;
      }
      step(in, certain);
      ++at;
    }
    return summary_;
  }

 private:
  // A loop by its back edge: what it looked like the last two times round.
  struct Loop {
    std::size_t edge{}, head{};
    int rounds{};
    bool done{};
    std::vector<Value> registers[2];
    Counts counts[2];
    Summary summary[2];
    std::int64_t x[2]{}, y[2]{};
  };
  struct Compared {  // the setp that wrote a predicate
    bool valid{};
    std::uint8_t compare{};
    std::int64_t x{}, y{};
  };

  void leave(std::size_t edge) {
    for (Loop& l : loops_)
      if (l.edge == edge) l.rounds = 0, l.done = false;
  }

  // A counted loop whose rounds are alike is skipped but for its first and last rounds: registers
  // that grow by the same step each round are moved on, and the counts are multiplied. Called at a
  // taken back edge.
  void accelerate(std::size_t edge, std::size_t head, const Instruction& in) {
    Loop* loop = nullptr;
    for (Loop& l : loops_) {
      if (l.edge == edge)
        loop = &l;
      else if (l.edge < edge && l.head >= head)
        l.rounds = 0, l.done = false;  // inner loops start anew
    }
    if (!loop) {
      loops_.emplace_back();
      loop = &loops_.back();
      loop->edge = edge, loop->head = head;
    }
    if (loop->done) return;
    const Compared& c = compared_[in.predicate];
    if (!c.valid) return;
    if (loop->rounds >= 2) {
      std::int64_t dx = c.x - loop->x[1], dy = c.y - loop->y[1];
      bool steady = dx == loop->x[1] - loop->x[0] && dy == loop->y[1] - loop->y[0];
      Summary now = summary_ - loop->summary[1], before = loop->summary[1] - loop->summary[0];
      std::int64_t rest = steady && now == before ? remaining(c, dx, dy, in.predicate_negated) : 0;
      if (rest > 4) {
        auto skip = static_cast<std::uint64_t>(rest - 2);
        for (std::size_t i = 0; i < registers_.size(); ++i) {
          Value &r = registers_[i], &b = loop->registers[1][i], &a = loop->registers[0][i];
          if (!r.known || !b.known || !a.known) continue;
          std::uint64_t step = r.bits - b.bits;
          if (step != 0 && step == b.bits - a.bits) r.bits += step * skip;
        }
        counts_->advance(loop->counts[1], static_cast<double>(skip));
        summary_ = summary_ + now * static_cast<double>(skip);
        loop->done = true;
        return;
      }
    }
    if (loop->rounds >= 1) {
      loop->registers[0].swap(loop->registers[1]);
      loop->counts[0] = loop->counts[1];
      loop->summary[0] = loop->summary[1];
      loop->x[0] = loop->x[1], loop->y[0] = loop->y[1];
    }
    loop->registers[1] = registers_;
    loop->counts[1] = *counts_;
    loop->summary[1] = summary_;
    loop->x[1] = c.x, loop->y[1] = c.y;
    ++loop->rounds;
    if (loop->rounds > 64) loop->done = true;  // never steady: stop trying
  }

  // How many more times the edge is taken, if both sides of the comparison go on as they did.
  static std::int64_t remaining(const Compared& c, std::int64_t dx, std::int64_t dy, bool negated) {
    static constexpr std::uint8_t inverse[] = {1, 0, 5, 4, 3, 2};  // eq ne lt le gt ge
    std::uint8_t compare = negated ? inverse[c.compare] : c.compare;
    std::int64_t f = c.x - c.y, d = dx - dy;
    if (d == 0) return 0;
    switch (compare) {
      case 2:
        return d > 0 && f < 0 ? (-f + d - 1) / d - 1 : 0;
      case 3:
        return d > 0 && f <= 0 ? -f / d : 0;
      case 4:
        return d < 0 && f > 0 ? (f - d - 1) / -d - 1 : 0;
      case 5:
        return d < 0 && f >= 0 ? f / -d : 0;
      case 1:
        return f % d == 0 && -f / d > 0 ? -f / d - 1 : 0;
      default:
        return 0;
    }
  }

  static std::uint64_t mask(std::uint64_t v, int bytes) {
    return bytes >= 8 ? v : v & ((std::uint64_t{1} << (8 * bytes)) - 1);
  }
  static std::int64_t extend(std::uint64_t v, int bytes) {
    if (bytes >= 8) return static_cast<std::int64_t>(v);
    std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
    v = mask(v, bytes);
    return static_cast<std::int64_t>((v ^ sign) - sign);
  }

  Value special(int index) const {
    std::uint32_t linear = thread_[0] + launch_.geometry.block[0] *
                                            (thread_[1] + launch_.geometry.block[1] * thread_[2]);
    Value v;
    v.known = true;
    if (index < 3)
      v.bits = thread_[index];
    else if (index < 6)
      v.bits = launch_.geometry.block[index - 3];
    else if (index < 9)
      v.bits = block_[index - 6];
    else if (index < 12)
      v.bits = launch_.geometry.grid[index - 9];
    else if (index == 12)
      v.bits = linear % 32;
    else if (index == 13)
      v.bits = linear / 32;
    else if (index < 17)
      v.bits = block_[index - 14];
    else if (index == 17)
      v.bits = launch_.geometry.grid[0];
    else if (index == 18 || index == 19)
      v.bits = 0;
    else if (index == 20)
      v.bits = 1;
    else
      v.known = false;
    return v;
  }

  Value value(const Argument& a) const {
    Value v;
    switch (a.kind) {
      case Argument::Kind::reg:
        v = registers_[a.index];
        break;
      case Argument::Kind::immediate:
        v.bits = static_cast<std::uint64_t>(a.value), v.known = true;
        break;
      case Argument::Kind::special:
        v = special(a.index);
        break;
      default:
        break;
    }
    if (a.negated && v.known) v.bits = (v.bits & 1) ^ 1;
    return v;
  }

  void set(const Argument& a, Value v, bool certain) {
    if (a.kind == Argument::Kind::reg) {
      if (!certain) v.known = false;
      registers_[a.index] = v;
      compared_[a.index].valid = false;
    } else if (a.kind == Argument::Kind::list) {
      for (const Argument& item : program_.lists[a.index]) set(item, Value{}, certain);
    }
  }
  void forget(const Instruction& in) {
    if (in.argument_count > 0) set(in.arguments[0], Value{}, true);
  }

  Value address(const Argument& a) const {
    Value v;
    if (a.index >= 0) v = registers_[a.index];
    v.bits += static_cast<std::uint64_t>(a.value);
    return v;
  }

  void touch(std::array<Traffic, max_roots + 1>& side, const Value& at, double bytes,
             bool certain) {
    if (!certain) counts_->exact = false;
    Traffic& t = side[at.root >= 0 && at.root < max_roots ? at.root : max_roots];
    t.bytes += bytes * weight_;
    if (at.known) {
      t.low = std::min(t.low, at.bits);
      t.high = std::max(t.high, at.bits + static_cast<std::uint64_t>(bytes));
    } else {
      t.blind += bytes * weight_;
    }
  }

  void step(const Instruction& in, bool certain) {
    const Argument* a = in.arguments;
    int size = in.type.bytes;
    auto binary = [&](auto f) {
      Value x = value(a[1]), y = value(a[2]), out;
      out.known = x.known && y.known;
      out.root = x.root >= 0 ? x.root : y.root;
      if (out.known) out.bits = mask(f(x.bits, y.bits), size);
      set(a[0], out, certain);
    };
    switch (in.code) {
      case Code::mov: {
        if (a[0].kind == Argument::Kind::list && a[1].kind == Argument::Kind::reg) {
          // Unpack: {lo, hi} of a wider register.
          const auto& items = program_.lists[a[0].index];
          Value v = value(a[1]);
          int part = items.empty() ? 4 : std::max(1, size / static_cast<int>(items.size()));
          for (std::size_t i = 0; i < items.size(); ++i) {
            Value p = v;
            p.bits = mask(part * i < 8 ? v.bits >> (8 * part * i) : 0, part);
            set(items[i], p, certain);
          }
        } else if (a[1].kind == Argument::Kind::list) {
          const auto& items = program_.lists[a[1].index];
          Value out;
          out.known = !items.empty() && size <= 8;
          int part = items.empty() ? 4 : std::max(1, size / static_cast<int>(items.size()));
          for (std::size_t i = 0; i < items.size(); ++i) {
            Value p = value(items[i]);
            out.known &= p.known;
            if (out.known) out.bits |= mask(p.bits, part) << (8 * part * i);
          }
          set(a[0], out, certain);
        } else {
          set(a[0], value(a[1]), certain);
        }
        break;
      }
      case Code::cvta:
        set(a[0], value(a[1]), certain);
        break;
      case Code::load_parameter: {
        if (a[0].kind == Argument::Kind::list) {
          const auto& items = program_.lists[a[0].index];
          for (std::size_t i = 0; i < items.size(); ++i) {
            Argument at = a[1];
            at.value += static_cast<std::int64_t>(size * i);
            set(items[i], parameter(at, size, in.type.is_signed), certain);
          }
        } else {
          set(a[0], parameter(a[1], size, in.type.is_signed), certain);
        }
        break;
      }
      case Code::load_global: {
        Value at = address(a[1]);
        touch(counts_->read, at, in.bytes, certain);
        summary_.read += in.bytes;
        forget(in);
        break;
      }
      case Code::load_other:
        forget(in);
        break;
      case Code::store_global: {
        double bytes = in.bytes;
        if (in.bytes == -1) {  // cp.async.bulk.global.shared [dst], [src], size
          Value n = value(a[2]);
          bytes = n.known ? static_cast<double>(n.bits) : 0;
          if (!n.known) counts_->exact = false;
        } else if (in.bytes == -2) {
          // The box is in the tensor map; what is written equals what the tile holds: unknown here.
          counts_->exact = false;
          ++bulk_stores_;
          break;
        }
        touch(counts_->written, address(a[0]), bytes, certain);
        summary_.written += bytes;
        break;
      }
      case Code::atomic_global: {
        // atom d, [a], b; red [a], b
        const Argument& memory = a[0].kind == Argument::Kind::memory ? a[0] : a[1];
        touch(counts_->written, address(memory), in.bytes, certain);
        touch(counts_->read, address(memory), in.bytes, certain);
        summary_.written += in.bytes;
        if (a[0].kind != Argument::Kind::memory) forget(in);
        break;
      }
      case Code::copy_async: {
        double bytes = in.bytes;
        if (in.argument_count > 3) {
          Value n = value(a[3]);  // source size: the rest is filled with zeros
          if (n.known) bytes = std::min(bytes, static_cast<double>(mask(n.bits, 4)));
        }
        if (bytes > 0) touch(counts_->read, address(a[1]), bytes, certain);
        summary_.read += bytes;
        break;
      }
      case Code::bulk_expect: {
        Value n;
        for (int i = 0; i < in.argument_count; ++i)
          if (a[i].kind == Argument::Kind::immediate ||
              (i + 1 == in.argument_count && a[i].kind == Argument::Kind::reg))
            n = value(a[i]);
        if (n.known)
          counts_->bulk_read += static_cast<double>(mask(n.bits, 4)) * elected_weight_,
              summary_.bulk += static_cast<double>(mask(n.bits, 4));
        else
          counts_->exact = false;
        break;
      }
      case Code::cvt: {
        Value v = value(a[1]);
        if (v.known)
          v.bits =
              mask(in.from.is_signed ? static_cast<std::uint64_t>(extend(v.bits, in.from.bytes))
                                     : mask(v.bits, in.from.bytes),
                   size);
        set(a[0], v, certain);
        break;
      }
      case Code::add:
        binary([](std::uint64_t x, std::uint64_t y) { return x + y; });
        break;
      case Code::sub:
        binary([](std::uint64_t x, std::uint64_t y) { return x - y; });
        break;
      case Code::mul_lo:
        binary([](std::uint64_t x, std::uint64_t y) { return x * y; });
        break;
      case Code::and_:
        binary([](std::uint64_t x, std::uint64_t y) { return x & y; });
        known_zero(in, certain);
        break;
      case Code::or_:
        binary([](std::uint64_t x, std::uint64_t y) { return x | y; });
        known_one(in, certain);
        break;
      case Code::xor_:
        binary([](std::uint64_t x, std::uint64_t y) { return x ^ y; });
        break;
      case Code::shl:
        binary([&](std::uint64_t x, std::uint64_t y) {
          return (y & 0xffffffff) >= 8u * size ? 0 : x << (y & 0xffffffff);
        });
        break;
      case Code::shr:
        binary([&](std::uint64_t x, std::uint64_t y) {
          y &= 0xffffffff;
          if (in.type.is_signed)
            return static_cast<std::uint64_t>(extend(x, size) >> std::min<std::uint64_t>(y, 63));
          return y >= 8u * size ? 0 : mask(x, size) >> y;
        });
        break;
      case Code::min:
      case Code::max:
        binary([&](std::uint64_t x, std::uint64_t y) {
          bool less =
              in.type.is_signed ? extend(x, size) < extend(y, size) : mask(x, size) < mask(y, size);
          return less == (in.code == Code::min) ? x : y;
        });
        break;
      case Code::div:
      case Code::rem: {
        Value x = value(a[1]), y = value(a[2]), out;
        std::uint64_t d = mask(y.bits, size);
        if (x.known && y.known && d != 0) {
          out.known = true;
          if (in.type.is_signed) {
            std::int64_t n = extend(x.bits, size), m = extend(y.bits, size);
            if (m == -1)
              out.bits = in.code == Code::div
                             ? static_cast<std::uint64_t>(-static_cast<std::uint64_t>(n))
                             : 0;
            else
              out.bits = static_cast<std::uint64_t>(in.code == Code::div ? n / m : n % m);
          } else {
            std::uint64_t n = mask(x.bits, size);
            out.bits = in.code == Code::div ? n / d : n % d;
          }
          out.bits = mask(out.bits, size);
        }
        set(a[0], out, certain);
        break;
      }
      case Code::mul_wide: {
        Value out = wide(value(a[1]), value(a[2]), in);
        set(a[0], out, certain);
        break;
      }
      case Code::mul_hi:
        set(a[0], high(value(a[1]), value(a[2]), in), certain);
        break;
      case Code::mad_lo:
      case Code::mad_wide:
      case Code::mad_hi: {
        Value x = value(a[1]), y = value(a[2]), z = value(a[3]), product, out;
        if (in.code == Code::mad_wide)
          product = wide(x, y, in);
        else if (in.code == Code::mad_hi)
          product = high(x, y, in);
        else
          product.known = x.known && y.known, product.bits = x.bits * y.bits;
        out.known = product.known && z.known;
        out.root = z.root >= 0 ? z.root : x.root >= 0 ? x.root : y.root;
        out.bits = mask(product.bits + z.bits, in.code == Code::mad_wide ? 2 * size : size);
        set(a[0], out, certain);
        break;
      }
      case Code::not_: {
        Value v = value(a[1]);
        v.bits = in.type.predicate ? (v.bits & 1) ^ 1 : mask(~v.bits, size);
        set(a[0], v, certain);
        break;
      }
      case Code::neg: {
        Value v = value(a[1]);
        v.bits = mask(-v.bits, size);
        set(a[0], v, certain);
        break;
      }
      case Code::abs: {
        Value v = value(a[1]);
        v.bits = mask(static_cast<std::uint64_t>(std::llabs(extend(v.bits, size))), size);
        set(a[0], v, certain);
        break;
      }
      case Code::setp: {
        Value x = value(a[1]), y = value(a[2]), out;
        out.known = x.known && y.known;
        if (out.known) {
          bool less = in.type.is_signed ? extend(x.bits, size) < extend(y.bits, size)
                                        : mask(x.bits, size) < mask(y.bits, size);
          bool equal = mask(x.bits, size) == mask(y.bits, size);
          bool results[6] = {equal, !equal, less, less || equal, !less && !equal, !less};
          out.bits = results[in.compare];
        }
        if (in.combine && in.argument_count > 3) {
          Value z = value(a[3]);
          bool decided = in.combine == 1   ? (z.known && !z.bits) || (out.known && !out.bits)
                         : in.combine == 2 ? (z.known && z.bits) || (out.known && out.bits)
                                           : false;
          if (decided)
            out.bits = in.combine == 2, out.known = true;
          else {
            out.known &= z.known;
            if (out.known)
              out.bits = in.combine == 1   ? out.bits & z.bits
                         : in.combine == 2 ? out.bits | z.bits
                                           : out.bits ^ z.bits;
          }
        }
        set(a[0], out, certain);
        if (a[0].second >= 0) {
          Value other = out;
          other.bits = (out.bits & 1) ^ 1;
          if (!certain) other.known = false;
          registers_[a[0].second] = other;
        }
        if (certain && a[0].kind == Argument::Kind::reg && !in.combine && x.known && y.known) {
          compared_[a[0].index] = {
              true, in.compare,
              in.type.is_signed ? extend(x.bits, size)
                                : static_cast<std::int64_t>(mask(x.bits, size)),
              in.type.is_signed ? extend(y.bits, size)
                                : static_cast<std::int64_t>(mask(y.bits, size))};
        }
        break;
      }
      case Code::selp: {
        Value p = value(a[3]), x = value(a[1]), y = value(a[2]), out;
        if (p.known)
          out = p.bits & 1 ? x : y;
        else if (x.known && y.known && x.bits == y.bits)
          out = x;
        else
          out.root = x.root >= 0 ? x.root : y.root;
        set(a[0], out, certain);
        break;
      }
      case Code::bfe: {
        Value x = value(a[1]), pos = value(a[2]), length = value(a[3]), out;
        out.known = x.known && pos.known && length.known;
        if (out.known) {
          int p = static_cast<int>(pos.bits & 0xff), l = static_cast<int>(length.bits & 0xff);
          std::uint64_t field = p >= 64 ? 0 : mask(x.bits, size) >> p;
          if (l < 64) field &= (std::uint64_t{1} << l) - 1;
          if (in.type.is_signed && l > 0 && l < 64 && (field >> (l - 1) & 1))
            field |= ~((std::uint64_t{1} << l) - 1);
          out.bits = mask(field, size);
        }
        set(a[0], out, certain);
        break;
      }
      case Code::bfi: {
        Value f = value(a[1]), base = value(a[2]), pos = value(a[3]), length = value(a[4]), out;
        out.known = f.known && base.known && pos.known && length.known;
        if (out.known) {
          int p = static_cast<int>(pos.bits & 0xff), l = static_cast<int>(length.bits & 0xff);
          std::uint64_t ones = l >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << l) - 1;
          if (p < 64)
            out.bits = mask((base.bits & ~(ones << p)) | ((f.bits & ones) << p), size);
          else
            out.bits = base.bits;
        }
        set(a[0], out, certain);
        break;
      }
      case Code::popc: {
        Value v = value(a[1]);
        v.bits = static_cast<std::uint64_t>(__builtin_popcountll(mask(v.bits, size)));
        set(a[0], v, certain);
        break;
      }
      case Code::clz: {
        Value v = value(a[1]);
        std::uint64_t m = mask(v.bits, size);
        v.bits = m ? static_cast<std::uint64_t>(__builtin_clzll(m)) - (64 - 8 * size) : 8u * size;
        set(a[0], v, certain);
        break;
      }
      case Code::lop3: {
        Value x = value(a[1]), y = value(a[2]), z = value(a[3]), table = value(a[4]), out;
        out.known = x.known && y.known && z.known && table.known;
        if (out.known)
          for (int bit = 0; bit < 32; ++bit) {
            int index = static_cast<int>((x.bits >> bit & 1) << 2 | (y.bits >> bit & 1) << 1 |
                                         (z.bits >> bit & 1));
            out.bits |= (table.bits >> index & 1) << bit;
          }
        set(a[0], out, certain);
        break;
      }
      case Code::shfl: {
        // Broadcast of a value equal over the warp, as Triton uses it for the warp's number.
        Value v = value(a[1]);
        set(a[0], v, certain);
        if (a[0].second >= 0) registers_[a[0].second] = Value{1, true, -1};
        break;
      }
      case Code::elect: {
        Value v;
        v.known = true;
        v.bits = special(12).bits == 0;
        if (a[0].second >= 0) registers_[a[0].second] = v;  // elect.sync lane|predicate, mask
        v.bits = 0;
        set(a[0], v, certain);
        break;
      }
      case Code::wait: {
        Value v;
        v.known = true;
        v.bits = 1;
        set(a[0], v, certain);
        break;
      }
      case Code::mma:
      case Code::wgmma:
        counts_->tensor_flops += in.flops * weight_;
        summary_.tensor_flops += in.flops;
        if (!certain) counts_->exact = false;
        forget(in);
        break;
      case Code::tcgen_mma: {
        // tcgen05.mma [d], a, b, idesc, enable: N >> 3 in bits 17–22, M >> 4 in bits 24–28; one
        // thread issues.
        Value descriptor = value(a[3]);
        double n = 128, m = 128;
        if (descriptor.known)
          n = static_cast<double>((descriptor.bits >> 17 & 0x3f) << 3),
          m = static_cast<double>((descriptor.bits >> 24 & 0x1f) << 4);
        else
          counts_->exact = false;
        double k = program_.dtype == DType::tf32                                    ? 8
                   : program_.dtype == DType::f8e4m3 || program_.dtype == DType::i8 ? 32
                                                                                    : 16;
        counts_->tensor_flops += 2 * m * n * k * elected_weight_;
        summary_.tensor_flops += 2 * m * n * k;
        break;
      }
      case Code::float_op:
        counts_->flops += in.flops * weight_;
        summary_.flops += in.flops;
        forget(in);
        break;
      case Code::shf:
      case Code::prmt:
      case Code::sad:
      case Code::vote:
      case Code::unknown_result:
        counts_->flops += in.flops * weight_;
        forget(in);
        break;
      case Code::call:
        counts_->exact = false;
        for (int i = 0; i < in.argument_count; ++i)
          if (a[i].kind == Argument::Kind::reg) registers_[a[i].index] = Value{};
        break;
      default:
        break;
    }
  }

  // x & 0 and x | all ones are known even if x is not; predicates use this for masks.
  void known_zero(const Instruction& in, bool certain) {
    Value x = value(in.arguments[1]), y = value(in.arguments[2]);
    if (x.known == y.known) return;
    if ((x.known && mask(x.bits, in.type.bytes) == 0) ||
        (y.known && mask(y.bits, in.type.bytes) == 0)) {
      Value zero;
      zero.known = true;
      set(in.arguments[0], zero, certain);
    }
  }
  void known_one(const Instruction& in, bool certain) {
    if (!in.type.predicate) return;
    Value x = value(in.arguments[1]), y = value(in.arguments[2]);
    if (x.known == y.known) return;
    if ((x.known && x.bits & 1) || (y.known && y.bits & 1)) {
      Value one;
      one.known = true;
      one.bits = 1;
      set(in.arguments[0], one, certain);
    }
  }

  Value wide(const Value& x, const Value& y, const Instruction& in) const {
    Value out;
    out.known = x.known && y.known;
    int size = in.type.bytes;
    if (in.type.is_signed)
      out.bits = static_cast<std::uint64_t>(extend(x.bits, size)) *
                 static_cast<std::uint64_t>(extend(y.bits, size));
    else
      out.bits = mask(x.bits, size) * mask(y.bits, size);
    out.bits = mask(out.bits, 2 * size);
    return out;
  }
  Value high(const Value& x, const Value& y, const Instruction& in) const {
    Value out;
    out.known = x.known && y.known;
    int size = in.type.bytes;
    if (in.type.is_signed) {
      __int128 product = static_cast<__int128>(extend(x.bits, size)) * extend(y.bits, size);
      out.bits = mask(static_cast<std::uint64_t>(product >> (8 * size)), size);
    } else {
      unsigned __int128 product =
          static_cast<unsigned __int128>(mask(x.bits, size)) * mask(y.bits, size);
      out.bits = mask(static_cast<std::uint64_t>(product >> (8 * size)), size);
    }
    return out;
  }

  Value parameter(const Argument& a, int size, bool is_signed) const {
    Value v;
    if (a.parameter < 0 || static_cast<std::size_t>(a.parameter) >= program_.parameters.size() ||
        !launch_.arguments)
      return v;
    const auto& sizes = launch_.kernel->parameter_sizes;
    std::size_t bytes =
        static_cast<std::size_t>(a.parameter) < sizes.size() ? sizes[a.parameter] : 0;
    if (a.value < 0 || static_cast<std::size_t>(a.value) + size > bytes || size > 8) return v;
    const auto* p = static_cast<const std::byte*>(launch_.arguments[a.parameter]);
    if (!p) return v;
    std::memcpy(&v.bits, p + a.value, size);
    if (is_signed) v.bits = static_cast<std::uint64_t>(extend(v.bits, size));
    v.known = true;
    v.root = arguments_[a.parameter].root;
    return v;
  }

  const Program& program_;
  const Launch& launch_;
  const std::vector<Value>& arguments_;
  std::vector<Value> registers_;
  std::vector<Compared> compared_;
  std::vector<Loop> loops_;
  double elected_weight_{1};
  std::uint64_t limit_;
  std::uint64_t steps_{};
  std::array<std::uint32_t, 3> block_{}, thread_{};
  double weight_{1};
  Counts* counts_{};
  Summary summary_;
  int bulk_stores_{};
};

// Indices along one axis of the grid and how many blocks each stands for. The last one may be cut
// off by a mask and stands for itself.
struct Axis {
  std::vector<std::uint32_t> at;
  std::vector<double> weight;
  bool sampled{};  // blocks differ along the axis and not all are run
};

Axis axis(std::uint32_t n, bool varies, std::uint32_t samples) {
  Axis a;
  auto add = [&a](std::uint32_t at, double weight) {
    a.at.push_back(at), a.weight.push_back(weight);
  };
  if (n <= 2 || (varies && n <= 2 * samples)) {
    for (std::uint32_t i = 0; i < n; ++i) add(i, 1);
  } else if (!varies) {
    add(0, n - 1);
    add(n - 1, 1);
  } else {
    // The middles of equal stretches: exact where the work grows by the same amount from block to
    // block. The first block counts for nothing but shows where the addresses begin.
    add(0, 0);
    for (std::uint32_t i = 0; i < samples; ++i)
      add(static_cast<std::uint32_t>((2.0 * i + 1) * (n - 1) / (2.0 * samples)),
          static_cast<double>(n - 1) / samples);
    add(n - 1, 1);
    a.sampled = true;
  }
  return a;
}

}  // namespace

Totals count(const Program& program, const Launch& launch) {
  Totals totals;
  std::vector<Value> arguments(program.parameters.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    // A device address, as far as anybody can say.
    bool eight = program.parameters[i].bytes == 8;
    if (!eight || !launch.arguments || i >= launch.kernel->parameter_sizes.size()) continue;
    std::uint64_t word = 0;
    if (launch.kernel->parameter_sizes[i] == 8 && launch.arguments[i])
      std::memcpy(&word, launch.arguments[i], 8);
    bool device = launch.extent ? word > 0xffff && launch.extent(word) > 0
                                : program.parameters[i].pointer || word > 0xffffffff;
    if (device && i < max_roots) arguments[i].root = static_cast<std::int16_t>(i);
  }

  const auto& g = launch.geometry;
  auto block_threads = static_cast<std::uint32_t>(g.block[0] * g.block[1] * g.block[2]);
  if (block_threads == 0 || g.blocks() == 0) return totals;
  // At most a few milliseconds of thinking per distinct launch.
  constexpr std::uint64_t budget = 600000, one_thread = 1000000;
  Thread thread(program, launch, arguments, one_thread);
  auto coordinates = [&](std::uint32_t linear) {
    return std::array<std::uint32_t, 3>{linear % g.block[0], linear / g.block[0] % g.block[1],
                                        linear / g.block[0] / g.block[1]};
  };

  Counts probe;
  thread.run({0, 0, 0}, coordinates(0), 1, 1, probe);
  std::uint64_t cost = std::max<std::uint64_t>(1, thread.steps());
  std::uint64_t runs = std::clamp<std::uint64_t>(budget / cost, 16, 8192);

  // Does the work depend on where the block is? Look at a block in the middle and at the last but
  // one.
  std::array<Axis, 3> axes;
  std::array<bool, 3> varies{};
  int varying = 0;
  for (int d = 0; d < 3; ++d) {
    if (g.grid[d] <= 2) continue;
    for (std::uint32_t t : {0u, block_threads - 1}) {
      Counts ignored;
      Summary base = thread.run({0, 0, 0}, coordinates(t), 0, 0, ignored);
      for (std::uint32_t at : {g.grid[d] / 2, g.grid[d] - 2}) {
        std::array<std::uint32_t, 3> block{};
        block[d] = at;
        varies[d] |= !(thread.run(block, coordinates(t), 0, 0, ignored) == base);
      }
      if (cost > budget / 16) break;
    }
    varying += varies[d];
  }
  std::uint32_t samples = varying <= 1 ? 8 : varying == 2 ? 4 : 3;
  for (int d = 0; d < 3; ++d) axes[d] = axis(g.grid[d], varies[d], samples);
  std::size_t blocks = axes[0].at.size() * axes[1].at.size() * axes[2].at.size();
  auto threads = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(runs / std::max<std::size_t>(1, blocks), 2, block_threads));
  // Whole warps look alike but for their place: spread the sample over lanes and warps.
  std::vector<std::uint32_t> picks;
  if (threads >= block_threads) {
    for (std::uint32_t i = 0; i < block_threads; ++i) picks.push_back(i);
  } else {
    for (std::uint32_t i = 0; i < threads; ++i)
      picks.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) *
                                                 (block_threads - 1) / std::max(1u, threads - 1)));
    if (program.elects)
      for (std::uint32_t i = 0; i < block_threads; i += 32) picks.push_back(i);
    std::sort(picks.begin(), picks.end());
    picks.erase(std::unique(picks.begin(), picks.end()), picks.end());
  }
  bool every_thread = picks.size() == block_threads;

  Counts counts;
  for (std::size_t z = 0; z < axes[2].at.size(); ++z)
    for (std::size_t y = 0; y < axes[1].at.size(); ++y)
      for (std::size_t x = 0; x < axes[0].at.size(); ++x) {
        double weight = axes[0].weight[x] * axes[1].weight[y] * axes[2].weight[z];
        double elected = weight;
        weight *= static_cast<double>(block_threads) / static_cast<double>(picks.size());
        Summary one;
        bool same = true;
        for (std::size_t i = 0; i < picks.size(); ++i) {
          Summary s = thread.run({axes[0].at[x], axes[1].at[y], axes[2].at[z]},
                                 coordinates(picks[i]), weight, elected, counts);
          if (i == 0) one = s;
          same &= s == one;
        }
        if (!same && !every_thread) counts.exact = false;
      }
  for (const Axis& a : axes)
    if (a.sampled) counts.exact = false;

  auto unique = [&](const std::array<Traffic, max_roots + 1>& side) {
    double bytes = 0;
    for (int i = 0; i <= max_roots; ++i) {
      const Traffic& t = side[i];
      if (t.bytes <= 0) continue;
      double seen = t.bytes - t.blind;
      if (t.high > t.low) seen = std::min(seen, static_cast<double>(t.high - t.low));
      double blind = t.blind;
      if (blind > 0 && i < max_roots && launch.extent) {
        std::uint64_t word = 0;
        std::memcpy(&word, launch.arguments[i], 8);
        blind = std::min(blind, static_cast<double>(launch.extent(word)));
      }
      bytes += std::max(0.0, seen) + blind;
    }
    return bytes;
  };
  totals.bytes_read = unique(counts.read) + counts.bulk_read;
  totals.bytes_written = unique(counts.written) + counts.bulk_written;
  totals.flops = counts.flops;
  totals.tensor_flops = counts.tensor_flops;
  totals.exact = counts.exact && program.unknown_opcodes == 0;
  totals.steps = thread.steps();
  return totals;
}

}  // namespace maya::decode::ptx
