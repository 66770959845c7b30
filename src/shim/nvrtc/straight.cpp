#include "shim/nvrtc/straight.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "shim/nvrtc/words.h"

namespace maya::shim::nvrtc {
namespace {

// Behind the group that opens at `open`; the end of the text where it is never closed.
std::size_t behind_group(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' || text[i] == '{';
    depth -= text[i] == ')' || text[i] == ']' || text[i] == '}';
    if (depth == 0) return i + 1;
  }
  return text.size();
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::string without(std::string text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_word(text[at - 1])) && (end >= text.size() || !is_word(text[end]));
    if (whole)
      text.erase(at, word.size());
    else
      at = end;
  }
  return text;
}

struct Parameter {
  std::string name, type;  // of the element, for a pointer; else empty
};

// "const float* __restrict__ x" is a pointer to float named x.
Parameter parameter_of(std::string_view text) {
  std::string whole(text);
  for (std::string_view word : {"const", "__restrict__", "__restrict", "volatile"})
    whole = without(std::move(whole), word);
  whole = trimmed(whole);
  std::size_t begin = whole.size();
  while (begin > 0 && is_word(whole[begin - 1])) --begin;
  Parameter result{whole.substr(begin), {}};
  const std::string type = trimmed(std::string_view(whole).substr(0, begin));
  if (std::count(type.begin(), type.end(), '*') == 1 && type.back() == '*')
    result.type = trimmed(std::string_view(type).substr(0, type.size() - 1));
  return result;
}

std::vector<Parameter> parameters_of(std::string_view list) {
  std::vector<Parameter> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size()) {
      depth += list[i] == '(' || list[i] == '<' || list[i] == '[';
      depth -= list[i] == ')' || list[i] == '>' || list[i] == ']';
      if (list[i] != ',' || depth > 0) continue;
    }
    found.push_back(parameter_of(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return found;
}

// Whether the word at [begin, end) may make a thread do more than it spells.
bool repeats(std::string_view body, std::size_t begin, std::size_t end) {
  const std::string_view word = body.substr(begin, end - begin);
  for (std::string_view loop : {"for", "while", "do", "goto", "asm", "__shared__"})
    if (word == loop) return true;
  // A macro: CUDA_KERNEL_LOOP(i, n).
  const std::size_t next = skip_spaces(body, end);
  return word.size() > 1 && next < body.size() && body[next] == '(' &&
         std::none_of(word.begin(), word.end(),
                      [](char c) { return std::islower(static_cast<unsigned char>(c)); }) &&
         std::any_of(word.begin(), word.end(),
                     [](char c) { return std::isupper(static_cast<unsigned char>(c)); });
}

// How a statement goes on behind an access.
enum class Use { read, written, both };
Use use_at(std::string_view body, std::size_t at) {
  at = skip_spaces(body, at);
  const std::string_view rest = body.substr(std::min(at, body.size()));
  if (rest.starts_with("=") && !rest.starts_with("==")) return Use::written;
  for (std::string_view change : {"+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--"})
    if (rest.starts_with(change)) return Use::both;
  return Use::read;
}

// Whether "__ldg(" stands in front of `at`.
bool loaded(std::string_view body, std::size_t at) {
  constexpr std::string_view load = "__ldg(";
  while (at > 0 && is_space(body[at - 1])) --at;
  return at >= load.size() && body.substr(at - load.size(), load.size()) == load;
}

}  // namespace

std::vector<Touched> straight_accesses(std::string_view code, std::size_t open) {
  if (open >= code.size() || code[open] != '(') return {};
  const std::size_t close = behind_group(code, open);
  const std::size_t brace = skip_spaces(code, close);
  if (brace >= code.size() || code[brace] != '{') return {};
  const std::size_t end = behind_group(code, brace);
  if (end == code.size() && code.back() != '}') return {};
  const std::string_view body = code.substr(brace, end - brace);
  const std::vector<Parameter> parameters = parameters_of(code.substr(open + 1, close - open - 2));

  struct Sites {
    std::set<std::string> reads, writes;  // the indices, as they are spelled
  };
  std::vector<Sites> sites(parameters.size());
  for (std::size_t i = 0; i < body.size();) {
    if (!is_word(body[i])) {
      ++i;
      continue;
    }
    std::size_t word_end = i;
    while (word_end < body.size() && is_word(body[word_end])) ++word_end;
    if (repeats(body, i, word_end)) return {};
    const std::string_view word = body.substr(i, word_end - i);
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) {
      return !p.type.empty() && p.name == word;
    });
    if (found != parameters.end()) {
      Sites& site = sites[static_cast<std::size_t>(found - parameters.begin())];
      const std::size_t next = skip_spaces(body, word_end);
      if (next < body.size() && body[next] == '[') {
        const std::size_t behind = behind_group(body, next);
        const std::string index(body.substr(next, behind - next));
        const Use use = use_at(body, behind);
        if (use != Use::written) site.reads.insert(index);
        if (use != Use::read) site.writes.insert(index);
      } else if (loaded(body, i)) {
        const std::size_t group = body.rfind('(', i);
        site.reads.insert(std::string(body.substr(word_end, behind_group(body, group) - word_end)));
      } else {
        return {};
      }
    }
    i = word_end;
  }
  std::vector<Touched> result;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (const Sites& s = sites[p]; !s.reads.empty() || !s.writes.empty())
      result.push_back({p, static_cast<int>(s.reads.size()), static_cast<int>(s.writes.size()),
                        parameters[p].type});
  const bool writes =
      std::any_of(result.begin(), result.end(), [](const Touched& t) { return t.writes > 0; });
  return writes ? result : std::vector<Touched>{};
}

}  // namespace maya::shim::nvrtc
