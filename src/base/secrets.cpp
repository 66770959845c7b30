#include "base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace maya::base {
namespace {

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Characters of an option's or variable's name.
bool of_a_name(char c) { return alnum(c) || c == '_' || c == '-' || c == '.'; }

// Characters that end an unquoted value.
bool ends_value(char c) {
  return space(c) || c == '"' || c == '\'' || c == ',' || c == ';' || c == ')' || c == '}' ||
         c == ']' || c == '&' || c == '|';
}

// Random strings switch between letters, digits, upper and lower case much more often than names
// and paths do.
bool looks_random(std::string_view piece) {
  if (piece.size() < 20) return false;
  auto kind = [](char c) {
    return digit(c) ? 0 : std::isupper(static_cast<unsigned char>(c)) ? 1 : 2;
  };
  int changes = 0;
  bool digits = false, letters = false;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    digits |= digit(piece[i]), letters |= !digit(piece[i]);
    if (i > 0) changes += kind(piece[i]) != kind(piece[i - 1]);
  }
  return digits && letters && changes >= static_cast<int>(piece.size()) / 5;
}

// Prefixes that services give their tokens.
bool has_known_prefix(std::string_view text) {
  static constexpr std::array<std::string_view, 15> prefixes{
      "hf_",    "sk-",   "sk_",   "pk_",  "ghp_", "gho_",   "ghs_", "github_pat_",
      "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "nvapi-", "eyJ"};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return text.starts_with(prefix) && text.size() >= prefix.size() + 12 &&
           std::any_of(text.begin(), text.end(), digit);
  });
}

bool is_switch(std::string_view value) {
  const std::string word = lower(value);
  return word.empty() || word == "true" || word == "false" || word == "none" || word == "null" ||
         word == "yes" || word == "no" || word == "on" || word == "off";
}

// `--key-dim 64` and `--pad-token-id 0` are sizes; `--token 1234` is not.
bool is_secret_value(std::string_view name, std::string_view value) {
  if (is_switch(value) || value == mask || value.starts_with('$')) return false;
  static constexpr std::array<std::string_view, 8> last{"key",    "keys", "token",    "secret",
                                                        "passwd", "pwd",  "password", "auth"};
  const std::string word = lower(name);
  const bool ends =
      std::any_of(last.begin(), last.end(), [&](std::string_view l) { return word.ends_with(l); });
  return ends || !std::all_of(value.begin(), value.end(),
                              [](char c) { return digit(c) || c == '.' || c == ',' || c == '-'; });
}

// Masks random strings and tokens of known services anywhere in the text.
std::string mask_random(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (alnum(text[end]) || text[end] == '_' || text[end] == '-')) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view word = text.substr(i, end - i);
    if (has_known_prefix(word)) {
      out += mask;
    } else {
      for (std::size_t k = 0; k < word.size();) {
        std::size_t stop = k;
        while (stop < word.size() && alnum(word[stop])) ++stop;
        const std::string_view piece = word.substr(k, stop - k);
        out += looks_random(piece) ? mask : piece;
        if (stop < word.size()) out += word[stop++];
        k = stop;
      }
    }
    i = end;
  }
  return out;
}

// scheme://user:password@host
std::string mask_urls(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find("://");
    if (at == std::string_view::npos) return out += text;
    std::size_t end = at + 3;
    while (end < text.size() && !space(text[end]) && text[end] != '/' && text[end] != '"' &&
           text[end] != '\'')
      ++end;
    const std::string_view authority = text.substr(at + 3, end - at - 3);
    const std::size_t host = authority.rfind('@'), colon = authority.find(':');
    out += text.substr(0, at + 3);
    if (host != std::string_view::npos) {
      out += colon < host ? authority.substr(0, colon + 1) : std::string_view();
      out += mask;
      out += authority.substr(host);
    } else {
      out += authority;
    }
    text.remove_prefix(end);
  }
}

// Masks the values of names that denote a credential: name=value, name: value, name="value",
// --name value.
std::string mask_named(std::string_view text) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    if (!of_a_name(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && of_a_name(text[end])) ++end;
    const std::string_view name = text.substr(i, end - i);
    out += name;
    i = end;
    const bool bearer = lower(name) == "bearer" || lower(name) == "basic";
    if (!bearer && !names_a_secret(name)) continue;
    // In JSON the name is followed by its closing quote.
    std::size_t at = i;
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
    while (at < text.size() && space(text[at])) ++at;
    const bool separated = at < text.size() && (text[at] == '=' || text[at] == ':');
    if (separated) {
      ++at;
      while (at < text.size() && space(text[at])) ++at;
    } else if ((!name.starts_with('-') && !bearer) || at == i || at >= text.size() ||
               text[at] == '-') {
      continue;  // a word of a sentence, or an option without a value
    }
    const char quote = at < text.size() && (text[at] == '"' || text[at] == '\'') ? text[at] : '\0';
    const std::size_t begin = at + (quote ? 1 : 0);
    std::size_t stop = begin;
    while (stop < text.size() && (quote ? text[stop] != quote : !ends_value(text[stop]))) ++stop;
    std::string_view value = text.substr(begin, stop - begin);
    // "Authorization: Bearer X": the value is what follows the scheme.
    if (lower(value) == "bearer" || lower(value) == "basic") continue;
    out += text.substr(i, begin - i);
    out += is_secret_value(name, value) ? mask : value;
    i = stop;
  }
  return out;
}

std::string masked(std::string_view text) { return mask_random(mask_named(mask_urls(text))); }

}  // namespace

bool names_a_secret(std::string_view name) {
  std::string word = lower(name);
  std::erase_if(word, [](char c) { return c == '-' || c == '_' || c == '.'; });
  static constexpr std::array<std::string_view, 6> last{"key",  "keys", "token",
                                                        "auth", "pwd",  "authorization"};
  static constexpr std::array<std::string_view, 9> anywhere{
      "secret", "password",  "passwd",     "passphrase", "credential",
      "apikey", "accesskey", "privatekey", "authtoken"};
  if (std::any_of(anywhere.begin(), anywhere.end(),
                  [&](std::string_view part) { return word.find(part) != std::string::npos; }))
    return true;
  if (std::any_of(last.begin(), last.end(),
                  [&](std::string_view part) { return word.ends_with(part); }))
    return true;
  // The word may also be in the middle of a name: AUTH_HEADER, --token-value.
  std::string part;
  for (char c : std::string(name) + "_") {
    if (alnum(c)) {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (part == "key" || part == "token" || part == "auth") return true;
    part.clear();
  }
  return false;
}

std::string without_secrets(std::string_view command) { return masked(command); }

std::vector<std::string> without_secrets(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  std::string_view option;  // the previous word, if it is an option whose value is a credential
  for (const std::string& word : words) {
    if (!option.empty() && !word.starts_with('-')) {
      out.emplace_back(is_secret_value(option, word) ? std::string(mask) : word);
      option = {};
      continue;
    }
    option = {};
    if (word.starts_with('-') && word.find('=') == std::string::npos && !word.ends_with('-') &&
        word.find(' ') == std::string::npos && names_a_secret(word))
      option = word;
    out.push_back(masked(word));
  }
  return out;
}

}  // namespace maya::base
