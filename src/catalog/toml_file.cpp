#include "catalog/toml_file.h"

#include <stdexcept>

#include "base/files.h"
#include "catalog/tomlplusplus.h"

namespace maya::catalog {
namespace {

std::string at(const std::string& path, const toml::source_region& where) {
  return path + ":" + std::to_string(where.begin.line) + ": ";
}

// Returns an error message, or an empty string.
std::string flatten(const toml::table& table, const std::string& prefix, TomlFile& file) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    int line = static_cast<int>(node.source().begin.line);
    if (auto* inner = node.as_table()) {
      if (auto error = flatten(*inner, name + ".", file); !error.empty()) return error;
    } else if (auto* text = node.as_string()) {
      file.entries.push_back({name, text->get(), line});
    } else if (auto* flag = node.as_boolean()) {
      file.entries.push_back({name, flag->get(), line});
    } else if (auto* whole = node.as_integer()) {
      file.entries.push_back({name, static_cast<double>(whole->get()), line});
    } else if (auto* real = node.as_floating_point()) {
      file.entries.push_back({name, real->get(), line});
    } else {
      return at(file.path, node.source()) + name +
             ": expected a number, a text or true/false, found an array or a date";
    }
  }
  return {};
}

}  // namespace

Result<TomlFile> parse_toml(std::string_view text, const std::string& path) {
  try {
    toml::table table = toml::parse(text, std::string_view(path));
    TomlFile file{path, {}};
    if (auto error = flatten(table, "", file); !error.empty()) return Error{error};
    return file;
  } catch (const toml::parse_error& error) {
    return Error{at(path, error.source()) + "not TOML: " + std::string(error.description())};
  } catch (const std::exception& error) {
    return Error{path + ": not TOML: " + error.what()};
  }
}

Result<TomlFile> read_toml(const std::string& path) {
  // The largest file of the catalogue has a few KB. The limit protects against wrong paths.
  constexpr std::size_t most = 1 << 20;
  auto text = base::read_file(path, most);
  if (!text) return Error{text.error().message + "; check the path and its permissions"};
  return parse_toml(*text, path);
}

}  // namespace maya::catalog
