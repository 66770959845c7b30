#include "decode/ptx.h"

#include <cctype>
#include <cstdlib>
#include <unordered_map>

#include "decode/name.h"
#include "decode/ptx_opcode.h"

namespace maya::decode::ptx {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

// Also drops .loc and .file, which end with the line and not with a semicolon.
std::string without_comments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool line_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (line_start && text[i] == '.' &&
        (text.substr(i, 4) == ".loc" || text.substr(i, 5) == ".file")) {
      while (i < text.size() && text[i] != '\n') ++i;
      out += '\n';
      continue;
    }
    line_start =
        text[i] == '\n' || (line_start && std::isspace(static_cast<unsigned char>(text[i])));
    if (text[i] == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      while (i < text.size() && text[i] != '\n') ++i;
      out += '\n';
      line_start = true;
    } else if (text[i] == '/' && i + 1 < text.size() && text[i + 1] == '*') {
      std::size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
      out += ' ';
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view s, char by) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= s.size(); ++i) {
    if (i == s.size() || (s[i] == by && depth == 0)) {
      std::string_view part = trim(s.substr(begin, i - begin));
      if (!part.empty()) out.push_back(part);
      begin = i + 1;
    } else if (s[i] == '[' || s[i] == '{' || s[i] == '(') {
      ++depth;
    } else if (s[i] == ']' || s[i] == '}' || s[i] == ')') {
      --depth;
    }
  }
  return out;
}

constexpr std::string_view specials[] = {"%tid.x",
                                         "%tid.y",
                                         "%tid.z",
                                         "%ntid.x",
                                         "%ntid.y",
                                         "%ntid.z",
                                         "%ctaid.x",
                                         "%ctaid.y",
                                         "%ctaid.z",
                                         "%nctaid.x",
                                         "%nctaid.y",
                                         "%nctaid.z",
                                         "%laneid",
                                         "%warpid",
                                         "%clusterid.x",
                                         "%clusterid.y",
                                         "%clusterid.z",
                                         "%nclusterid.x",
                                         "%cluster_ctaid.x",
                                         "%cluster_ctarank",
                                         "%cluster_nctarank",
                                         "%smid",
                                         "%nsmid"};

class Reader {
 public:
  Reader(Program& program) : program_(program) {}

  bool read(std::string_view text, std::string_view entry) {
    std::size_t at = find_entry(text, entry);
    if (at == std::string_view::npos) return false;
    std::size_t open = text.find('(', at);
    std::size_t brace = text.find('{', at);
    if (brace == std::string_view::npos) return false;
    if (open != std::string_view::npos && open < brace) {
      std::size_t close = text.find(')', open);
      if (close == std::string_view::npos) return false;
      read_parameters(text.substr(open + 1, close - open - 1));
      brace = text.find('{', close);
      if (brace == std::string_view::npos) return false;
    }
    int depth = 0;
    std::size_t end = brace;
    for (; end < text.size(); ++end) {
      if (text[end] == '{') ++depth;
      if (text[end] == '}' && --depth == 0) break;
    }
    read_shared(text);
    read_body(text.substr(brace + 1, end - brace - 1));
    resolve();
    program_.registers = static_cast<std::int32_t>(registers_.size());
    return !program_.code.empty();
  }

 private:
  static std::size_t find_entry(std::string_view text, std::string_view entry) {
    for (std::size_t at = text.find(".entry"); at != std::string_view::npos;
         at = text.find(".entry", at + 6)) {
      std::string_view rest = trim(text.substr(at + 6, entry.size() + 64));
      if (rest.substr(0, entry.size()) == entry) {
        char next = rest.size() > entry.size() ? rest[entry.size()] : ' ';
        if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_' && next != '$')
          return at;
      }
    }
    return std::string_view::npos;
  }

  void read_parameters(std::string_view list) {
    for (std::string_view p : split(list, ',')) {
      Parameter parameter;
      std::string name;
      std::size_t i = 0;
      std::uint64_t count = 1;
      while (i < p.size()) {
        while (i < p.size() && std::isspace(static_cast<unsigned char>(p[i]))) ++i;
        std::size_t begin = i;
        while (i < p.size() && !std::isspace(static_cast<unsigned char>(p[i]))) ++i;
        std::string_view word = p.substr(begin, i - begin);
        if (word.empty()) continue;
        if (word[0] == '.') {
          Type t;
          if (type_of(word.substr(1), t)) parameter.bytes = t.bytes;
          if (word == ".ptr") parameter.pointer = true;
        } else if (std::isdigit(static_cast<unsigned char>(word[0]))) {
          continue;  // an alignment
        } else {
          std::size_t bracket = word.find('[');
          name = std::string(word.substr(0, bracket));
          if (bracket != std::string_view::npos)
            count = std::strtoull(std::string(word.substr(bracket + 1)).c_str(), nullptr, 10);
        }
      }
      parameter.bytes = static_cast<std::uint16_t>(parameter.bytes * count);
      parameters_[name] = static_cast<std::int32_t>(program_.parameters.size());
      program_.parameters.push_back(parameter);
    }
  }

  // Variables in shared memory, one behind the other; one of unknown size (".extern") comes last.
  void read_shared(std::string_view text) {
    constexpr std::int64_t alignment = 128, largest = 1 << 20;
    std::int64_t used = 0;
    std::vector<std::string> open;
    for (std::size_t at = text.find(".shared "); at != std::string_view::npos;
         at = text.find(".shared ", at + 8)) {
      std::string_view rest = text.substr(at + 8);
      std::size_t end = rest.find_first_of(";={");
      if (end == std::string_view::npos) break;
      rest = trim(rest.substr(0, end));
      // ".align 16 .b8 name[64]"; an instruction's operands start with its type, too, and have
      // none.
      if (rest.substr(0, 6) != ".align" && rest.substr(0, 2) != ".b") continue;
      std::int64_t element = 1;
      std::size_t bracket = rest.find('[');
      std::string_view head = trim(rest.substr(0, bracket));
      std::size_t space = head.find_last_of(" \t");
      if (space == std::string_view::npos) continue;
      std::string name(head.substr(space + 1));
      std::size_t dot = head.rfind('.', space);
      Type type;
      if (dot != std::string_view::npos &&
          type_of(trim(head.substr(dot + 1, space - dot - 1)), type))
        element = type.bytes;
      std::int64_t bytes = element;
      if (bracket != std::string_view::npos)
        bytes *= static_cast<std::int64_t>(
            std::strtoull(std::string(rest.substr(bracket + 1)).c_str(), nullptr, 10));
      if (bytes <= 0 || bytes > largest) {
        open.push_back(std::move(name));
      } else if (used <= largest && shared_.emplace(std::move(name), used).second) {
        used = (used + bytes + alignment - 1) / alignment * alignment;
      }
    }
    for (std::string& name : open) shared_.emplace(std::move(name), used);
    program_.shared_bytes = static_cast<std::uint64_t>(used);
  }

  void read_body(std::string_view body) {
    std::vector<std::int32_t> scopes{0};
    std::int32_t next_scope = 1;
    std::size_t begin = 0;
    int vector_depth = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      char c = body[i];
      std::string_view so_far = trim(body.substr(begin, i - begin));
      if (c == '[' || c == '(') ++vector_depth;
      if (c == ']' || c == ')') --vector_depth;
      if (c == '{') {
        // A brace inside a statement is a vector or, in a directive, an initializer; else a scope.
        if (so_far.empty() && vector_depth == 0) {
          scopes.push_back(next_scope++);
          begin = i + 1;
        } else {
          ++vector_depth;
        }
      } else if (c == '}') {
        if (vector_depth > 0 && !so_far.empty()) {
          --vector_depth;
        } else {
          if (scopes.size() > 1) scopes.pop_back();
          begin = i + 1;
        }
      } else if (c == ':' && vector_depth == 0) {
        // A label, unless it is part of "::" (cp.async.bulk…shared::cluster).
        bool doubled = (i + 1 < body.size() && body[i + 1] == ':') || (i > 0 && body[i - 1] == ':');
        bool word = !so_far.empty();
        for (char w : so_far)
          word &= std::isalnum(static_cast<unsigned char>(w)) || w == '_' || w == '$' || w == '%';
        if (!doubled && word) {
          labels_[std::string(so_far)].push_back(
              {static_cast<std::int32_t>(program_.code.size()), scopes.back()});
          begin = i + 1;
        }
      } else if (c == ';' && vector_depth <= 0) {
        statement(so_far, scopes.back());
        begin = i + 1;
        vector_depth = 0;
      }
    }
  }

  std::int32_t reg(std::string_view name) {
    auto [it, inserted] =
        registers_.try_emplace(std::string(name), static_cast<std::int32_t>(registers_.size()));
    return it->second;
  }

  static bool number(std::string_view s, std::int64_t& value, bool& real) {
    real = false;
    value = 0;
    bool negative = !s.empty() && s[0] == '-';
    std::string_view digits = negative ? s.substr(1) : s;
    if (digits.empty() || !std::isdigit(static_cast<unsigned char>(digits[0]))) return false;
    if (digits.size() > 2 && digits[0] == '0' &&
        (digits[1] == 'f' || digits[1] == 'F' || digits[1] == 'd' || digits[1] == 'D')) {
      // The bits of a floating-point number, as they stand.
      real = digits.size() != (digits[1] == 'f' || digits[1] == 'F' ? 10u : 18u) || negative;
      if (!real)
        value = static_cast<std::int64_t>(
            std::strtoull(std::string(digits.substr(2)).c_str(), nullptr, 16));
      return true;
    }
    if (contains(digits, ".")) {
      real = true;
      return true;
    }
    value = static_cast<std::int64_t>(std::strtoull(std::string(digits).c_str(), nullptr, 0));
    if (negative) value = -value;
    return true;
  }

  Argument argument(std::string_view s) {
    Argument a;
    s = trim(s);
    if (s.empty() || s == "_") return a;
    if (s[0] == '!') {
      a = argument(s.substr(1));
      a.negated = true;
      return a;
    }
    if (std::size_t bar = s.find('|');
        bar != std::string_view::npos && s[0] != '[' && s[0] != '{') {
      Argument second = argument(s.substr(bar + 1));
      a = argument(s.substr(0, bar));
      a.second = second.kind == Argument::Kind::reg ? second.index : -1;
      return a;
    }
    if (s[0] == '{') {
      std::vector<Argument> items;
      for (std::string_view part : split(s.substr(1, s.size() - (s.back() == '}' ? 2 : 1)), ','))
        items.push_back(argument(part));
      a.kind = Argument::Kind::list;
      a.index = static_cast<std::int32_t>(program_.lists.size());
      program_.lists.push_back(std::move(items));
      return a;
    }
    if (s[0] == '[') {
      a.kind = Argument::Kind::memory;
      std::string_view inner = trim(s.substr(1, s.size() - (s.back() == ']' ? 2 : 1)));
      if (std::size_t comma = inner.find(','); comma != std::string_view::npos)
        inner = trim(inner.substr(0, comma));
      std::size_t plus = inner.find('+');
      std::string_view base = trim(inner.substr(0, plus));
      if (plus != std::string_view::npos) {
        bool real;
        number(trim(inner.substr(plus + 1)), a.value, real);
      }
      if (auto it = parameters_.find(std::string(base)); it != parameters_.end()) {
        a.parameter = static_cast<std::int16_t>(it->second);
      } else if (!base.empty() && (base[0] == '%' || registers_.count(std::string(base)))) {
        a.index = reg(base);
      } else if (auto found = shared_.find(std::string(base)); found != shared_.end()) {
        a.variable = true;
        a.value += found->second;
      }
      return a;
    }
    bool real;
    if (number(s, a.value, real)) {
      a.kind = real ? Argument::Kind::unknown : Argument::Kind::immediate;
      return a;
    }
    if (s[0] == '%') {
      for (std::size_t i = 0; i < std::size(specials); ++i)
        if (s == specials[i]) {
          a.kind = Argument::Kind::special;
          a.index = static_cast<std::int32_t>(i);
          return a;
        }
      a.kind = Argument::Kind::reg;
      a.index = reg(s);
      return a;
    }
    if (registers_.count(std::string(s))) {
      a.kind = Argument::Kind::reg;
      a.index = reg(s);
      return a;
    }
    if (auto it = parameters_.find(std::string(s)); it != parameters_.end()) {
      a.kind = Argument::Kind::unknown;
      a.parameter = static_cast<std::int16_t>(it->second);
      return a;
    }
    if (auto it = shared_.find(std::string(s)); it != shared_.end()) {
      a.kind = Argument::Kind::immediate;
      a.value = it->second;
      return a;
    }
    a.kind = Argument::Kind::label;
    a.index = static_cast<std::int32_t>(names_.size());
    names_.emplace_back(s);
    return a;
  }

  void statement(std::string_view s, std::int32_t scope) {
    if (s.empty()) return;
    if (s[0] == '.') {
      // ".reg .pred complete, p<4>": names without % must be known as registers.
      if (s.substr(0, 4) == ".reg")
        for (std::string_view part : split(s.substr(4), ',')) {
          std::size_t space = part.find_last_of(" \t");
          std::string_view name = space == std::string_view::npos ? part : part.substr(space + 1);
          if (!name.empty() && name[0] != '%' && name.find('<') == std::string_view::npos)
            reg(name);
        }
      return;
    }
    Instruction in;
    in.scope = scope;
    if (s[0] == '@') {
      std::size_t space = s.find_first_of(" \t\n");
      if (space == std::string_view::npos) return;
      std::string_view p = s.substr(1, space - 1);
      if (!p.empty() && p[0] == '!') in.predicate_negated = true, p.remove_prefix(1);
      in.predicate = reg(p);
      s = trim(s.substr(space));
    }
    std::size_t space = s.find_first_of(" \t\n");
    std::string_view opcode = s.substr(0, space);
    std::string_view rest =
        space == std::string_view::npos ? std::string_view() : trim(s.substr(space));
    std::vector<std::string_view> operands = split(rest, ',');
    for (std::size_t i = 0; i < operands.size() && i < 6; ++i)
      in.arguments[i] = argument(operands[i]);
    in.argument_count = static_cast<std::uint8_t>(std::min<std::size_t>(operands.size(), 6));
    classify(opcode, in, program_);
    // An assertion that fails ends the program; nothing is written to its tensors.
    if (in.code == Code::call && rest.find("__assertfail") != std::string_view::npos)
      in.code = Code::exit, in.argument_count = 0, in.assertion = 1;
    if (opcode == "trap") in.assertion = 1;
    if (in.code != Code::nop) program_.code.push_back(in);
  }

  void resolve() {
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      Instruction& in = program_.code[i];
      if (in.code != Code::branch) continue;
      const Argument& a = in.arguments[0];
      if (a.kind != Argument::Kind::label) continue;
      auto it = labels_.find(names_[a.index]);
      if (it == labels_.end()) continue;
      // The same label may stand in several inline-assembly scopes: take the branch's own.
      in.target = it->second.front().position;
      for (const Label& l : it->second)
        if (l.scope == in.scope) in.target = l.position;
    }
  }

  struct Label {
    std::int32_t position, scope;
  };
  Program& program_;
  std::unordered_map<std::string, std::int32_t> registers_, parameters_;
  std::unordered_map<std::string, std::vector<Label>> labels_;
  std::unordered_map<std::string, std::int64_t> shared_;  // variable → where it begins
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Program> parse(std::string_view text, std::string_view entry) {
  auto program = std::make_unique<Program>();
  program->name = std::string(entry);
  std::string plain = without_comments(text);
  Reader reader(*program);
  if (!reader.read(plain, entry)) return nullptr;
  mark_steering(*program);
  return program;
}

}  // namespace maya::decode::ptx
