// What each instruction does.
#include <cmath>

#include "decode/ptx_thread.h"

namespace maya::decode::ptx {

void Thread::step(const Instruction& in, bool certain) {
  const Argument* a = in.arguments;
  int size = in.type.bytes;
  auto binary = [&](auto f) {
    Value x = value(a[1]), y = value(a[2]), out;
    out.known = x.known && y.known;
    out.root = x.root >= 0 ? x.root : y.root;
    out.loaded = !out.known && (x.loaded || y.loaded);
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
      if (in.steers && in.vector == 1) {
        const bool one =
            a[0].kind == Argument::Kind::list && program_.lists[a[0].index].size() == 1;
        set(one ? program_.lists[a[0].index][0] : a[0], steering(at, in), certain);
      }
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
      if (v.known) {
        v.bits = mask(in.from.is_signed ? static_cast<std::uint64_t>(extend(v.bits, in.from.bytes))
                                        : mask(v.bits, in.from.bytes),
                      size);
        // The register may be wider than the type.
        if (in.type.is_signed) v.bits = static_cast<std::uint64_t>(extend(v.bits, size));
      }
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
      if (Value x = value(a[1]), y = value(a[2]);
          in.bounds_loop && x.known != y.known && (x.known ? y : x).loaded) {
        set(a[0], assumed_count(x.known ? x : y, in), certain);
        break;
      } else if (in.bounds_loop && in.code == Code::min && x.known && y.known) {
        note_count(x, y, in);
      }
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
      out.loaded = !out.known && (x.loaded || y.loaded || z.loaded);
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
      out.loaded = !out.known && (x.loaded || y.loaded);
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
        compared_[a[0].index] = {true, in.compare,
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
        // Of a signed field that ends behind the number, the number's sign is the rest.
        std::uint64_t field =
            in.type.is_signed ? static_cast<std::uint64_t>(extend(x.bits, size) >> std::min(p, 63))
            : p >= 64         ? 0
                              : mask(x.bits, size) >> p;
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
    case Code::shf: {
      // shf.l: the upper word of {high, low} shifted left; shf.r: the lower word, shifted right.
      Value low = value(a[1]), high = value(a[2]), by = value(a[3]), out;
      out.known = low.known && high.known && by.known && in.argument_count == 4;
      if (out.known) {
        const std::uint64_t both = mask(high.bits, 4) << 32 | mask(low.bits, 4);
        const std::uint64_t n =
            in.wraps ? by.bits & 31 : std::min<std::uint64_t>(mask(by.bits, 4), 32);
        out.bits = mask(in.leftward ? both << n >> 32 : both >> n, 4);
      }
      set(a[0], out, certain);
      break;
    }
    case Code::prmt: {
      Value low = value(a[1]), high = value(a[2]), pick = value(a[3]), out;
      out.known = low.known && high.known && pick.known;
      if (out.known) {
        const std::uint64_t both = mask(high.bits, 4) << 32 | mask(low.bits, 4);
        for (int i = 0; i < 4; ++i) {
          const std::uint64_t nibble = pick.bits >> (4 * i) & 15;
          std::uint64_t byte = both >> (8 * (nibble & 7)) & 0xff;
          if (nibble & 8) byte = byte & 0x80 ? 0xff : 0;
          out.bits |= byte << (8 * i);
        }
      }
      set(a[0], out, certain);
      break;
    }
    case Code::shfl: {
      // Broadcast of a value equal over the warp, as Triton uses it for the warp's number.
      Value v = value(a[1]);
      set(a[0], v, certain);
      if (a[0].second >= 0) registers_[a[0].second] = Value{1, true, false, -1};
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
    case Code::atomic_other:
      if (a[0].kind != Argument::Kind::memory) forget(in);
      break;
    case Code::sad:
    case Code::vote:
    case Code::redux:
    case Code::shuffle:
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

void Thread::known_zero(const Instruction& in, bool certain) {
  Value x = value(in.arguments[1]), y = value(in.arguments[2]);
  if (x.known == y.known) return;
  if ((x.known && mask(x.bits, in.type.bytes) == 0) ||
      (y.known && mask(y.bits, in.type.bytes) == 0)) {
    Value zero;
    zero.known = true;
    set(in.arguments[0], zero, certain);
  }
}

void Thread::known_one(const Instruction& in, bool certain) {
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

Value Thread::wide(const Value& x, const Value& y, const Instruction& in) const {
  Value out;
  out.known = x.known && y.known;
  out.loaded = !out.known && (x.loaded || y.loaded);
  int size = in.type.bytes;
  if (in.type.is_signed)
    out.bits = static_cast<std::uint64_t>(extend(x.bits, size)) *
               static_cast<std::uint64_t>(extend(y.bits, size));
  else
    out.bits = mask(x.bits, size) * mask(y.bits, size);
  out.bits = mask(out.bits, 2 * size);
  return out;
}

Value Thread::high(const Value& x, const Value& y, const Instruction& in) const {
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

}  // namespace maya::decode::ptx
