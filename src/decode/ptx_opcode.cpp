#include "decode/ptx_opcode.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>

#include "decode/name.h"
#include "decode/ptx_floats.h"

namespace maya::decode::ptx {
namespace {

// An opcode with its modifiers, and what is being found out about it.
struct Opcode {
  std::string_view whole, name;
  std::vector<std::string_view> modifiers;
  Instruction& in;
  Program& program;

  // "shared" is there as ".shared" and as ".shared::cluster".
  bool has(std::string_view what) const {
    return std::any_of(modifiers.begin(), modifiers.end(), [&](std::string_view m) {
      return m == what ||
             (m.size() > what.size() && m.substr(0, what.size()) == what && m[what.size()] == ':');
    });
  }
  bool mentions(std::string_view what) const { return contains(whole, what); }
};

// "m16n8k16" → 2·16·8·16
double shape_flops(const Opcode& op) {
  for (std::string_view p : op.modifiers) {
    if (p.size() < 6 || p[0] != 'm' || !std::isdigit(static_cast<unsigned char>(p[1]))) continue;
    std::size_t n = p.find('n'), k = p.find('k');
    if (n == std::string_view::npos || k == std::string_view::npos) continue;
    return 2.0 * std::atoi(std::string(p.substr(1)).c_str()) *
           std::atoi(std::string(p.substr(n + 1)).c_str()) *
           std::atoi(std::string(p.substr(k + 1)).c_str());
  }
  return 0;
}

void uses_tensor_cores(Opcode& op) {
  op.program.tensor_cores = true;
  op.program.dtype = op.mentions("e4m3") || op.mentions("f8f6f4") ? DType::f8e4m3
                     : op.mentions("e5m2")                        ? DType::f8e5m2
                     : op.mentions("bf16")                        ? DType::bf16
                     : op.mentions("tf32")                        ? DType::tf32
                     : op.mentions("s8") || op.mentions("u8")     ? DType::i8
                     : op.mentions("f64")                         ? DType::f64
                                                                  : DType::f16;
}

Space space_of(const Opcode& op) {
  if (op.has("shared")) return op.mentions("shared::cluster") ? Space::other : Space::shared;
  return op.has("local") || op.has("const") || op.has("param") ? Space::other : Space::global;
}

// Writes to another block's shared memory are not followed.
Space written_space(Opcode& op) {
  op.program.opaque_shared |= op.mentions("shared::cluster");
  return space_of(op);
}

void load(Opcode& op) {
  op.in.code = op.has("param")                                          ? Code::load_parameter
               : op.has("shared") || op.has("local") || op.has("const") ? Code::load_other
                                                                        : Code::load_global;
  op.in.space = space_of(op);
  op.in.bytes = op.in.type.bytes * op.in.vector;
  op.in.ordered = op.in.code == Code::load_global &&
                  (op.has("acquire") || op.has("relaxed") || op.has("volatile"));
}

void store(Opcode& op) {
  op.in.code = op.has("shared") || op.has("local") || op.has("param") ? Code::store_other
                                                                      : Code::store_global;
  op.in.space = written_space(op);
  op.in.bytes = op.in.type.bytes * op.in.vector;
}

struct ModeName {
  std::string_view name;
  Mode mode;
};

template <std::size_t n>
Mode mode_of(const Opcode& op, const ModeName (&names)[n]) {
  for (const auto& [name, mode] : names)
    if (op.has(name)) return mode;
  return Mode::none;
}

constexpr ModeName combinations[] = {{"add", Mode::add},       {"min", Mode::min},
                                     {"max", Mode::max},       {"and", Mode::and_},
                                     {"or", Mode::or_},        {"xor", Mode::xor_},
                                     {"exch", Mode::exchange}, {"cas", Mode::compare_exchange}};

// red has no destination: its memory operand stands first.
void atomic(Opcode& op) {
  op.in.mode = mode_of(op, combinations);
  op.in.space = written_space(op);
  if (op.has("shared")) {
    op.in.code = Code::atomic_other;
    return;
  }
  op.in.code = Code::atomic_global;
  op.in.bytes = op.in.type.bytes * op.in.vector;
}

void copy(Opcode& op) {
  if (!op.has("async")) return;
  if (op.has("bulk")) {
    op.program.opaque_shared = true;
    // To shared memory: counted by mbarrier.expect_tx. From shared memory: bytes are an operand
    // only of the plain form; the tensor form's box is in the descriptor.
    if (op.mentions("global.shared"))
      op.in.code = Code::store_global, op.in.bytes = op.has("tensor") ? -2 : -1;
  } else if (op.has("global")) {
    const Argument& size = op.in.arguments[2];
    op.in.code = Code::copy_async;
    op.in.bytes = op.in.argument_count > 2 && size.kind == Argument::Kind::immediate
                      ? static_cast<std::int32_t>(size.value)
                      : 16;
  }
}

void barrier_object(Opcode& op) {
  if (op.mentions("expect_tx"))
    op.in.code = Code::bulk_expect;
  else if (op.mentions("try_wait") || op.mentions("test_wait"))
    op.in.code = Code::wait;
  else if ((op.mentions("arrive") || op.mentions("pending")) &&
           op.in.arguments[0].kind == Argument::Kind::reg)
    op.in.code = Code::unknown_result;
}

void warp_product(Opcode& op) {
  double flops = shape_flops(op);
  bool product = flops > 0 && !op.mentions("load") && !op.mentions("store");
  op.in.code = product ? Code::mma : Code::unknown_result;
  op.in.flops = flops / 32;
  if (product) uses_tensor_cores(op);
}

void warp_group_product(Opcode& op) {
  double flops = shape_flops(op);
  if (flops <= 0) return;
  op.in.code = Code::wgmma;
  op.in.flops = flops / 128;
  uses_tensor_cores(op);
}

void block_product(Opcode& op) {
  if (op.has("mma"))
    op.in.code = Code::tcgen_mma, uses_tensor_cores(op);
  else if (op.has("ld"))
    op.in.code = Code::unknown_result;
}

void convert(Opcode& op) {
  const bool floats = op.in.type.is_float || op.in.from.is_float;
  op.in.code = floats ? Code::unknown_result : Code::cvt;
}

void compare(Opcode& op) {
  // The unsigned spellings stand for lt, le, gt and ge.
  static constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt",
                                               "ge", "lo", "ls", "hi", "hs"};
  std::string_view how = op.modifiers.empty() ? std::string_view() : op.modifiers[0];
  // "neu": or one of them is not a number.
  if (op.in.type.is_float && how.size() == 3 && how[2] == 'u') how.remove_suffix(1);
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (how == names[i]) op.in.compare = static_cast<std::uint8_t>(i < 6 ? i : i - 4);
  if (op.has("and")) op.in.combine = 1;
  if (op.has("or")) op.in.combine = 2;
  if (op.has("xor")) op.in.combine = 3;
  op.in.code = Code::setp;
  if (op.in.type.is_float) op.in.code = Code::unknown_result, op.in.flops = 1;
}

void shuffle(Opcode& op) {
  static constexpr ModeName names[] = {
      {"idx", Mode::index}, {"up", Mode::up}, {"down", Mode::down}, {"bfly", Mode::butterfly}};
  op.in.mode = mode_of(op, names);
  op.in.code = op.in.mode == Mode::index ? Code::shfl : Code::shuffle;
}

void vote(Opcode& op) {
  static constexpr ModeName names[] = {
      {"any", Mode::any}, {"all", Mode::all}, {"uni", Mode::uniform}, {"ballot", Mode::ballot}};
  op.in.mode = mode_of(op, names);
  op.in.code = Code::vote;
}

void reduce_warp(Opcode& op) {
  op.in.mode = mode_of(op, combinations);
  op.in.code = Code::redux;
}

// Only the plain meeting of all threads of a block or of a warp; others are left to the hardware.
void barrier(Opcode& op) {
  if (op.has("warp"))
    op.in.code = Code::warp_barrier;
  else
    op.in.code = Code::barrier;
  op.in.exact = op.has("sync") && !op.has("cluster") && !op.has("red") && op.in.argument_count < 2;
}

void opaque_store(Opcode& op) { op.program.opaque_shared = true; }

void elect(Opcode& op) {
  op.in.code = Code::elect;
  op.program.elects = true;
}

template <Code code>
void plain(Opcode& op) {
  op.in.code = code;
}

// The same whatever the type of the data.
struct Rule {
  std::string_view name;
  void (*apply)(Opcode&);
};
constexpr Rule rules[] = {{"ld", load},
                          {"ldu", load},
                          {"st", store},
                          {"atom", atomic},
                          {"red", atomic},
                          {"cp", copy},
                          {"mbarrier", barrier_object},
                          {"mma", warp_product},
                          {"wmma", warp_product},
                          {"wgmma", warp_group_product},
                          {"tcgen05", block_product},
                          {"bra", plain<Code::branch>},
                          {"brx", plain<Code::branch_indexed>},
                          {"ret", plain<Code::exit>},
                          {"exit", plain<Code::exit>},
                          {"trap", plain<Code::exit>},
                          {"mov", plain<Code::mov>},
                          {"cvta", plain<Code::cvta>},
                          {"cvt", convert},
                          {"setp", compare},
                          {"selp", plain<Code::selp>},
                          {"shfl", shuffle},
                          {"elect", elect},
                          {"vote", vote},
                          {"match", plain<Code::unknown_result>},
                          {"activemask", plain<Code::unknown_result>},
                          {"redux", reduce_warp},
                          {"bar", barrier},
                          {"barrier", barrier},
                          {"stmatrix", opaque_store},
                          {"call", plain<Code::call>}};

void floating(Opcode& op) {
  op.in.code = Code::float_op;
  if (op.name == "neg" || op.name == "abs" || op.name == "testp" || op.name == "copysign") return;
  op.in.flops = (op.mentions("x2") ? 2 : 1) * (op.name == "fma" || op.name == "mad" ? 2 : 1);
}

void integer(Opcode& op) {
  static constexpr struct {
    std::string_view name;
    Code code;
  } exact[] = {{"add", Code::add},   {"sub", Code::sub},  {"and", Code::and_}, {"or", Code::or_},
               {"xor", Code::xor_},  {"not", Code::not_}, {"neg", Code::neg},  {"shl", Code::shl},
               {"shr", Code::shr},   {"min", Code::min},  {"max", Code::max},  {"div", Code::div},
               {"rem", Code::rem},   {"abs", Code::abs},  {"bfe", Code::bfe},  {"bfi", Code::bfi},
               {"popc", Code::popc}, {"clz", Code::clz},  {"shf", Code::shf},  {"lop3", Code::lop3},
               {"prmt", Code::prmt}, {"sad", Code::sad}};
  // Nothing to count and no result.
  static constexpr std::string_view silent[] = {"membar",     "fence",
                                                "prefetch",   "prefetchu",
                                                "nanosleep",  "griddepcontrol",
                                                "setmaxnreg", "tensormap",
                                                "discard",    "applypriority",
                                                "nop",        "pragma",
                                                "brkpt",      "clusterlaunchcontrol"};
  // A result that addresses and sizes do not come from.
  static constexpr std::string_view opaque[] = {
      "ldmatrix",  "dp4a", "dp2a", "bmsk",  "fns",        "brev",         "bfind",  "slct",
      "isspacep",  "mapa", "set",  "cnot",  "addc",       "subc",         "lg2",    "ex2",
      "movmatrix", "tanh", "rcp",  "szext", "getctarank", "createpolicy", "istypep"};
  auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), op.name) != std::end(names);
  };
  if (op.name == "mul" || op.name == "mul24") {
    op.in.code = op.has("wide") ? Code::mul_wide : op.has("hi") ? Code::mul_hi : Code::mul_lo;
    return;
  }
  if (op.name == "mad" || op.name == "mad24") {
    op.in.code = op.has("wide") ? Code::mad_wide : op.has("hi") ? Code::mad_hi : Code::mad_lo;
    return;
  }
  for (const auto& e : exact)
    if (e.name == op.name) {
      op.in.code = e.code;
      return;
    }
  if (among(silent)) return;
  op.in.code = Code::unknown_result;
  if (!among(opaque)) ++op.program.unknown_opcodes;
}

// Arithmetic that its code and types describe in full. A modifier such as "sat" changes results.
bool described(const Opcode& op) {
  static constexpr std::string_view known[] = {"lo", "hi", "wide", "eq",    "ne",  "lt",    "le",
                                               "gt", "ge", "ls",   "hs",    "and", "or",    "xor",
                                               "l",  "r",  "wrap", "clamp", "to",  "global"};
  if (op.name == "mul24" || op.name == "mad24") return false;
  if (op.name == "lop3" && op.in.argument_count != 5) return false;
  int types = 0;
  for (std::string_view m : op.modifiers) {
    Type type;
    if (type_of(m, type))
      ++types;
    else if (std::find(std::begin(known), std::end(known), m) == std::end(known))
      return false;
  }
  return types > 0;
}

bool arithmetic(Code code) { return (code >= Code::cvt && code <= Code::sad) || code == Code::mov; }

// Data kept in 16 bits is converted on the way in and out; tensor cores have told their type.
void data_type(const Opcode& op) {
  if (op.program.tensor_cores) return;
  bool conversion = op.name == "cvt";
  if (op.in.code != Code::float_op && !conversion) return;
  if (op.mentions("bf16"))
    op.program.dtype = DType::bf16;
  else if (op.mentions(".f16"))
    op.program.dtype = DType::f16;
  else if (op.mentions("f64") && !conversion)
    op.program.dtype = DType::f64;
}

}  // namespace

bool type_of(std::string_view s, Type& t) {
  if (s == "pred") return t = {1, false, false, true}, true;
  if (s.size() < 2) return false;
  if (s == "f16x2" || s == "bf16x2" || s == "f32x2")
    return t = {static_cast<std::uint8_t>(s == "f32x2" ? 8 : 4), false, true, false}, true;
  if (s == "bf16") return t = {2, false, true, false}, true;
  if (s == "tf32") return t = {4, false, true, false}, true;
  char c = s[0];
  if (c != 'u' && c != 's' && c != 'b' && c != 'f') return false;
  int width = 0;
  for (char d : s.substr(1)) {
    if (!std::isdigit(static_cast<unsigned char>(d))) return false;
    width = width * 10 + (d - '0');
    if (width > 128) return false;
  }
  if (width != 8 && width != 16 && width != 32 && width != 64 && width != 128) return false;
  t = {static_cast<std::uint8_t>(width / 8), c == 's', c == 'f', false};
  return true;
}

void classify(std::string_view opcode, Instruction& in, Program& program) {
  Opcode op{opcode, {}, {}, in, program};
  for (std::size_t begin = 0; begin <= opcode.size();) {
    std::size_t dot = std::min(opcode.find('.', begin), opcode.size());
    if (begin == 0)
      op.name = opcode.substr(0, dot);
    else
      op.modifiers.push_back(opcode.substr(begin, dot - begin));
    begin = dot + 1;
  }
  // Types in order of appearance: destination, then source.
  int types = 0;
  for (std::string_view m : op.modifiers) {
    Type type;
    if (type_of(m, type)) {
      if (types++ == 0)
        in.type = in.from = type;
      else if (types == 2)
        in.from = type;
    }
    if (m == "v2") in.vector = 2;
    if (m == "v4") in.vector = 4;
    if (m == "v8") in.vector = 8;
  }
  auto rule = std::find_if(std::begin(rules), std::end(rules),
                           [&](const Rule& r) { return r.name == op.name; });
  if (rule != std::end(rules))
    rule->apply(op);
  else if (in.type.is_float)
    floating(op);
  else
    integer(op);
  if (in.code == Code::shf) in.wraps = op.has("wrap"), in.leftward = op.has("l");
  if (arithmetic(in.code)) in.exact = described(op);
  if (in.code == Code::float_op || in.code == Code::unknown_result)
    in.floats = float_of(op.name, op.modifiers, in);
  data_type(op);
}

}  // namespace maya::decode::ptx
