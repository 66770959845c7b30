#include "op/text.h"

#include <charconv>
#include <type_traits>
#include <vector>

namespace maya {
namespace {

template <class T>
std::string print(const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "1" : "0";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(enum_name(v));
  } else {
    char buffer[40];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
    return {buffer, end};
  }
}

template <class T>
bool scan(std::string_view text, T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "1" || text == "true" || text == "yes") return v = true, true;
    if (text == "0" || text == "false" || text == "no") return v = false, true;
    return false;
  } else if constexpr (std::is_enum_v<T>) {
    auto parsed = parse_enum<T>(text);
    if (parsed) v = *parsed;
    return parsed.has_value();
  } else {
    T parsed{};
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (code != std::errc{} || end != text.data() + text.size()) return false;
    if (parsed < 0 && !std::is_same_v<T, std::int32_t>) return false;  // only a root may be -1
    v = parsed;
    return true;
  }
}

template <class T>
std::string_view expectation() {
  if constexpr (std::is_same_v<T, bool>) return "0 or 1";
  if constexpr (std::is_same_v<T, DType>) return "a type such as f16, bf16, f32";
  if constexpr (std::is_enum_v<T>) return "one of the names of this enumeration";
  if constexpr (std::is_floating_point_v<T>) return "a number, not negative";
  return "a whole number, not negative";
}

}  // namespace

std::string to_text(const Work& work, bool all) {
  std::string out(kind_name(work));
  std::visit(
      [&](const auto& w) {
        using W = std::remove_cvref_t<decltype(w)>;
        const W fallback{};
        std::vector<std::string> defaults;
        W::each(fallback, [&](std::string_view, const auto& v) { defaults.push_back(print(v)); });
        std::size_t i = 0;
        W::each(w, [&](std::string_view key, const auto& v) {
          std::string value = print(v);
          if (all || value != defaults[i]) out.append(" ").append(key).append("=").append(value);
          ++i;
        });
      },
      work);
  return out;
}

Status set_field(Work& work, std::string_view key, std::string_view value) {
  return std::visit(
      [&](auto& w) -> Status {
        using W = std::remove_cvref_t<decltype(w)>;
        bool found = false;
        std::string problem, known;
        W::each(w, [&](std::string_view name, auto& v) {
          known.append(known.empty() ? "" : ", ").append(name);
          if (name != key) return;
          found = true;
          if (!scan(value, v))
            problem = std::string(key) + "=" + std::string(value) + ": expected " +
                      std::string(expectation<std::remove_cvref_t<decltype(v)>>());
        });
        if (!found)
          return Error{std::string(kind_name(work)) + " has no field '" + std::string(key) +
                       "'; it has " + known};
        if (!problem.empty()) return Error{std::string(kind_name(work)) + ": " + problem};
        return {};
      },
      work);
}

Result<Work> parse_work(std::string_view text) {
  auto next = [&]() -> std::string_view {
    auto begin = text.find_first_not_of(" \t\n,");
    if (begin == text.npos) return text = {};
    auto end = text.find_first_of(" \t\n,", begin);
    auto word = text.substr(begin, end == text.npos ? end : end - begin);
    text = end == text.npos ? std::string_view{} : text.substr(end);
    return word;
  };
  std::string_view kind = next();
  auto work = work_of_kind(kind);
  if (!work) {
    std::string known;
    for (std::size_t i = 0; i < std::variant_size_v<Work>; ++i)
      known.append(i ? ", " : "").append(kind_name(i));
    return Error{"unknown kind of op '" + std::string(kind) + "'; known are " + known};
  }
  for (std::string_view word = next(); !word.empty(); word = next()) {
    auto equals = word.find('=');
    if (equals == word.npos)
      return Error{std::string(kind) + ": expected key=value, found '" + std::string(word) + "'"};
    if (auto status = set_field(*work, word.substr(0, equals), word.substr(equals + 1)); !status)
      return status.error();
  }
  return *work;
}

}  // namespace maya
