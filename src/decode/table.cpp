#include "decode/table.h"

#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "decode/moves.h"
#include "op/text.h"

namespace maya::decode {
namespace {

// What an expression may look at.
struct Scope {
  const Arguments& arguments;
  const Work& work;
  const Signature& signature;
};
using Expression = std::function<std::int64_t(const Scope&)>;

std::int64_t field(const Work& work, std::string_view name) {
  std::int64_t found = 0;
  std::visit(
      [&](const auto& w) {
        std::remove_cvref_t<decltype(w)>::each(w, [&](std::string_view key, const auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value>)
            if (key == name) found = static_cast<std::int64_t>(value);
        });
      },
      work);
  return found;
}

// False: there is no such field, or it is no number.
bool set_number(Work& work, std::string_view name, std::int64_t number) {
  bool found = false;
  std::visit(
      [&](auto& w) {
        std::remove_cvref_t<decltype(w)>::each(w, [&](std::string_view key, auto& value) {
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_arithmetic_v<Value>)
            if (key == name) found = true, value = static_cast<Value>(number);
        });
      },
      work);
  return found;
}

// "T1:T0", "P0" or the name of a type; nothing: none of these.
std::optional<DType> type_of(std::string_view text, const Name& name) {
  if (auto named = parse_enum<DType>(text)) return named;
  if (text == "I")
    return !name.templates.empty() && dtype_of(name.templates.back()) == DType::i32 ? DType::i32
                                                                                    : DType::i64;
  DType type = DType::unknown;
  while (!text.empty() && type == DType::unknown) {
    const std::string_view word = text.substr(0, text.find(':'));
    text = word.size() < text.size() ? text.substr(word.size() + 1) : std::string_view();
    std::size_t index = 0;
    if (word.size() < 2 || (word[0] != 'T' && word[0] != 'P') ||
        std::from_chars(word.data() + 1, word.data() + word.size(), index).ptr !=
            word.data() + word.size())
      return std::nullopt;
    if (word[0] == 'T')
      type = template_dtype(name, index, DType::unknown);
    else if (index < name.parameters.size())
      type = dtype_of(pointee(name.parameters[index]));
  }
  return type == DType::unknown ? DType::f32 : type;
}

// Reads an expression, and notes the arguments it mentions.
class Reader {
 public:
  Reader(std::string_view text, const Name& name, const Signature& signature, const Work& kind,
         std::vector<std::size_t>& mentioned)
      : text_(text), name_(name), signature_(signature), kind_(kind), mentioned_(mentioned) {}

  std::optional<Expression> whole() {
    auto expression = sum();
    return at_ == text_.size() && good_ ? std::optional(expression) : std::nullopt;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Expression fail() {
    good_ = false;
    return [](const Scope&) { return std::int64_t{0}; };
  }
  Expression sum() {
    Expression left = product();
    for (;;) {
      if (take('+'))
        left = [left, right = product()](const Scope& s) { return left(s) + right(s); };
      else if (take('-'))
        left = [left, right = product()](const Scope& s) { return left(s) - right(s); };
      else
        return left;
    }
  }
  Expression product() {
    Expression left = factor();
    for (;;) {
      if (take('*'))
        left = [left, right = factor()](const Scope& s) { return left(s) * right(s); };
      else if (take('/'))
        left = [left, right = factor()](const Scope& s) {
          const std::int64_t by = right(s);
          return by == 0 ? 0 : left(s) / by;
        };
      else
        return left;
    }
  }
  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.' || text_[at_] == ':'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Expression factor() {
    if (take('(')) {
      Expression inner = sum();
      return take(')') ? inner : fail();
    }
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      std::int64_t number = 0;
      const char* end = text_.data() + text_.size();
      at_ = static_cast<std::size_t>(std::from_chars(text_.data() + at_, end, number).ptr -
                                     text_.data());
      return [number](const Scope&) { return number; };
    }
    const std::string_view name = word();
    if (name == "max") return maximum();
    if (name == "size") return size();
    if (Expression launch = of_launch(name)) return launch;
    if ((name == "a" || name == "i") && take('-')) return argument(name[0], number(word()), true);
    if (name.size() > 1 && (name[0] == 'a' || name[0] == 'i') && digits(name.substr(1)))
      return argument(name[0], number(name.substr(1)), false);
    if (name.size() > 1 && name[0] == 't' && digits(name.substr(1))) {
      const std::int64_t value =
          template_number(name_, static_cast<std::size_t>(number(name.substr(1))), 0);
      return [value](const Scope&) { return value; };
    }
    if (name.size() > 1 && (name[0] == 's' || name[0] == 'n')) {
      const std::size_t dot = name.find('.');
      if (digits(name.substr(1, dot == name.npos ? dot : dot - 1)) &&
          (name[0] == 'n') == (dot == name.npos))
        return tensor(name, dot);
    }
    bool known = false;
    std::visit(
        [&](const auto& w) {
          std::remove_cvref_t<decltype(w)>::each(
              w, [&](std::string_view key, const auto&) { known |= key == name; });
        },
        kind_);
    if (!known) return fail();
    return [key = std::string(name)](const Scope& s) { return field(s.work, key); };
  }
  Expression maximum() {
    if (!take('(')) return fail();
    Expression first = sum();
    if (!take(',')) return fail();
    Expression second = sum();
    if (!take(')')) return fail();
    return [first, second](const Scope& s) { return std::max(first(s), second(s)); };
  }
  Expression size() {
    if (!take('(')) return fail();
    const auto type = type_of(word(), name_);
    if (!type || !take(')')) return fail();
    return [bytes = whole_bytes(*type)](const Scope&) { return std::int64_t{bytes}; };
  }
  static Expression of_launch(std::string_view name) {
    static const std::map<std::string_view, int> dimensions = {
        {"grid", 0},  {"grid.x", 0},  {"grid.y", 1},  {"grid.z", 2},
        {"block", 3}, {"block.x", 3}, {"block.y", 4}, {"block.z", 5}};
    if (auto found = dimensions.find(name); found != dimensions.end())
      return [d = found->second](const Scope& s) {
        return static_cast<std::int64_t>(d < 3 ? s.arguments.grid(d) : s.arguments.block(d - 3));
      };
    if (name == "blocks")
      return
          [](const Scope& s) { return static_cast<std::int64_t>(s.arguments.geometry().blocks()); };
    if (name == "threads")
      return [](const Scope& s) {
        return static_cast<std::int64_t>(s.arguments.geometry().threads());
      };
    return {};
  }
  Expression argument(char kind, std::int64_t index, bool from_end) {
    if (index < 0) return fail();
    const auto& integers = signature_.integers();
    const auto count =
        static_cast<std::int64_t>(kind == 'i' ? integers.size() : name_.parameters.size());
    if (from_end) index = count - index;
    // A size that this kernel does not have is 1; an argument that is missing reads as 0.
    if (kind == 'i' && (index < 0 || index >= count))
      return [](const Scope&) { return std::int64_t{1}; };
    if (index < 0) return [](const Scope&) { return std::int64_t{0}; };
    const auto parameter =
        kind == 'i' ? integers[static_cast<std::size_t>(index)] : static_cast<std::size_t>(index);
    mentioned_.push_back(parameter);
    return [parameter](const Scope& s) { return s.arguments.integer(parameter); };
  }
  Expression tensor(std::string_view name, std::size_t dot) {
    const auto parameter =
        static_cast<std::size_t>(number(name.substr(1, dot == name.npos ? dot : dot - 1)));
    mentioned_.push_back(parameter);
    if (dot == name.npos)
      return [parameter](const Scope& s) {
        return s.signature.tensor(s.arguments, parameter).elements;
      };
    const std::int64_t dimension = number(name.substr(dot + 1));
    if (dimension < 0 || dimension > 24) return fail();
    return [parameter, dimension](const Scope& s) {
      return s.signature.tensor(s.arguments, parameter).size[dimension];
    };
  }
  static bool digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  }
  std::int64_t number(std::string_view text) {
    std::int64_t value = -1;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ptr !=
        text.data() + text.size())
      good_ = false;
    return value;
  }

  std::string_view text_;
  const Name& name_;
  const Signature& signature_;
  const Work& kind_;
  std::vector<std::size_t>& mentioned_;
  std::size_t at_ = 0;
  bool good_ = true;
};

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(by), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool matches(std::string_view pattern, std::string_view leaf) {
  for (std::string_view one : split(pattern, '|')) {
    std::string_view rest = leaf;
    const std::size_t first = one.find('*');
    if (first == one.npos ? leaf == one : starts_with(leaf, one.substr(0, first))) {
      if (first == one.npos) return true;
      rest.remove_prefix(first);
      const std::size_t last = one.rfind('*');
      const std::string_view end = one.substr(last + 1);
      if (!ends_with(rest, end)) continue;
      if (first == last || contains(rest, one.substr(first + 1, last - first - 1))) return true;
    }
  }
  return false;
}

// Nothing: the condition is not understood.
std::optional<bool> holds(std::string_view condition, const Kernel& kernel, const Name& name) {
  if (starts_with(condition, "!")) {
    auto inner = holds(condition.substr(1), kernel, name);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (starts_with(condition, "has:")) return contains(name.leaf, condition.substr(4));
  if (starts_with(condition, "of:")) return contains(kernel.demangled, condition.substr(3));
  const std::size_t equals = condition.find('=');
  const std::string_view left = condition.substr(0, equals);
  std::size_t index = 0;
  if (left.size() < 2 || std::from_chars(left.data() + 1, left.data() + left.size(), index).ptr !=
                             left.data() + left.size())
    return std::nullopt;
  const std::string_view right =
      equals == condition.npos ? std::string_view() : condition.substr(equals + 1);
  if (left[0] == 't' && equals == condition.npos) return template_number(name, index, 0) != 0;
  if (left[0] == 'T' && parse_enum<DType>(right))
    return template_dtype(name, index, DType::f32) == *parse_enum<DType>(right);
  if (left[0] == 'p' && !right.empty())
    return index < name.parameters.size() && name.parameters[index] == right;
  return std::nullopt;
}

std::optional<Semantics::Kind> semantics_kind(std::string_view name) {
  using Kind = Semantics::Kind;
  static const std::map<std::string_view, Kind> kinds = {{"fill", Kind::fill},
                                                         {"copy", Kind::copy_cast},
                                                         {"reduce", Kind::reduce},
                                                         {"scan", Kind::scan},
                                                         {"sort", Kind::sort},
                                                         {"unique", Kind::unique},
                                                         {"repeat", Kind::repeat},
                                                         {"nonzero_count", Kind::nonzero_count},
                                                         {"differences", Kind::differences}};
  auto found = kinds.find(name);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

// A row, read for one kernel.
class Compiled {
 public:
  Compiled(const Row& row, const Kernel& kernel, const Name& name)
      : name_(name), signature_(std::make_shared<Signature>(kernel, name)) {
    auto words = split(row.op, ' ');
    auto work = words.empty() ? std::nullopt : work_of_kind(words[0]);
    if (!work) {
      complain("kind of op", words.empty() ? "" : words[0]);
      return;
    }
    work_ = *work;
    for (std::size_t i = 1; i < words.size(); ++i) read_field(words[i]);
    for (std::string_view word : split(row.touches, ' ')) read_access(word);
    read_values(split(row.values, ' '));
  }

  const std::string& fault() const { return fault_; }

  std::vector<KeyPart> key(const Kernel& kernel) const {
    std::vector<KeyPart> parts;
    // Of a tensor its sizes, which the signature knows; of anything else all of it.
    for (const KeyPart& part : signature_->key(kernel))
      if (mentions(part.parameter)) parts.push_back(part);
    for (std::size_t i = 0; i < kernel.parameter_sizes.size() && i < 255; ++i) {
      const bool there = std::any_of(parts.begin(), parts.end(),
                                     [&](const KeyPart& part) { return part.parameter == i; });
      if (mentions(i) && !there && !signature_->is_tensor(i))
        parts.push_back({static_cast<std::uint8_t>(i), 0, kernel.parameter_sizes[i]});
    }
    return parts;
  }

  void decode(const Arguments& a, Decoded& d) const {
    Work work = work_;
    const Scope scope{a, work, *signature_};
    for (const auto& [name, expression] : fields_) set_number(work, name, expression(scope));
    d.op.work = work;
    for (const Touched& t : touched_)
      (t.write ? write : read)(d, a.pointer(t.argument), t.bytes(scope));
    if (kind_ == Semantics::Kind::unknown) return;
    d.semantics.kind = kind_;
    d.semantics.function = function_;
    if (k_) d.semantics.k = k_(scope);
    for (const Line& l : lines_)
      (l.output ? d.semantics.outputs : d.semantics.inputs)
          .push_back(line(a.pointer(l.argument), l.type, l.count(scope)));
  }

 private:
  struct Touched {
    bool write;
    std::size_t argument;
    Expression bytes;
  };
  struct Line {
    bool output;
    std::size_t argument;
    DType type;
    Expression count;
  };

  void complain(std::string_view what, std::string_view where) {
    if (fault_.empty()) fault_ = std::string(what) + " in '" + std::string(where) + "'";
  }
  bool mentions(std::size_t parameter) const {
    return std::find(mentioned_.begin(), mentioned_.end(), parameter) != mentioned_.end();
  }
  std::optional<Expression> expression(std::string_view text) {
    return Reader(text, name_, *signature_, work_, mentioned_).whole();
  }
  void read_field(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return complain("field", word);
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    if (set_field(work_, key, value)) return;  // a name or a plain number
    if (auto type = type_of(value, name_))
      if (set_field(work_, key, enum_name(*type))) return;
    auto computed = expression(value);
    Work copy = work_;
    if (!computed || !set_number(copy, key, 0)) return complain("field", word);
    fields_.emplace_back(std::string(key), *computed);
  }
  // "w0=…": the argument behind the letter.
  bool read_argument(std::string_view text, std::size_t& argument) {
    return !text.empty() && std::from_chars(text.data(), text.data() + text.size(), argument).ptr ==
                                text.data() + text.size();
  }
  void read_access(std::string_view word) {
    const std::size_t equals = word.find('=');
    std::size_t argument = 0;
    if (equals == word.npos || (word[0] != 'w' && word[0] != 'r') ||
        !read_argument(word.substr(1, equals - 1), argument))
      return complain("access", word);
    auto bytes = expression(word.substr(equals + 1));
    if (!bytes) return complain("access", word);
    touched_.push_back({word[0] == 'w', argument, *bytes});
  }
  void read_values(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    auto kind = semantics_kind(words[0]);
    if (!kind) return complain("kind of values", words[0]);
    kind_ = *kind;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = std::min(words[i].find('='), words[i].size() - 1);
      const std::string_view key = words[i].substr(0, equals), value = words[i].substr(equals + 1);
      if (key == "function") {
        function_ = value;
      } else if (key == "k") {
        auto k = expression(value);
        if (!k) return complain("values", words[i]);
        k_ = *k;
      } else {
        auto parts = split(value, ':');
        std::size_t argument = 0;
        if ((key != "out" && key != "in") || parts.size() != 3 || parts[0][0] != 'a' ||
            !read_argument(parts[0].substr(1), argument))
          return complain("values", words[i]);
        auto type = type_of(parts[1], name_);
        auto count = expression(parts[2]);
        if (!type || !count) return complain("values", words[i]);
        lines_.push_back({key == "out", argument, *type, *count});
      }
    }
  }

  Name name_;
  std::shared_ptr<Signature> signature_;
  Work work_;
  std::vector<std::pair<std::string, Expression>> fields_;
  std::vector<Touched> touched_;
  Semantics::Kind kind_{Semantics::Kind::unknown};
  std::string function_;
  Expression k_;
  std::vector<Line> lines_;
  std::vector<std::size_t> mentioned_;
  std::string fault_;
};

}  // namespace

Made from_rows(std::span<const Row> rows, const Kernel& kernel, const Name& name) {
  for (const Row& row : rows) {
    if (!matches(row.kernel, name.leaf)) continue;
    const auto conditions = split(row.when, ' ');
    if (!std::all_of(conditions.begin(), conditions.end(), [&](std::string_view condition) {
          return holds(condition, kernel, name).value_or(false);
        }))
      continue;
    auto compiled = std::make_shared<Compiled>(row, kernel, name);
    if (!compiled->fault().empty()) return nullptr;
    return make(
        compiled->key(kernel),
        [compiled](const Arguments& a, Decoded& d) { compiled->decode(a, d); }, row.always);
  }
  return nullptr;
}

std::string fault(const Row& row) {
  const Kernel kernel;
  const Name name;
  for (std::string_view condition : split(row.when, ' '))
    if (!holds(condition, kernel, name)) return "condition '" + std::string(condition) + "'";
  return Compiled(row, kernel, name).fault();
}

}  // namespace maya::decode
