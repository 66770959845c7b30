#include "estimate/model_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace maya::estimate {

double Section::get(std::string_view key, double fallback) const {
  auto it = values_.find(key);
  return it == values_.end() || it->second.empty() ? fallback : it->second.front();
}

const std::vector<double>* Section::list(std::string_view key) const {
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Status ModelFile::merge(std::string_view text, const std::string& origin) {
  Section* current = nullptr;
  int number = 0;
  bool versioned = false;
  auto fail = [&](const std::string& what) {
    return Error{origin + ":" + std::to_string(number) + ": " + what};
  };
  while (!text.empty()) {
    ++number;
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (auto hash = line.find('#'); hash != line.npos) line = line.substr(0, hash);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!versioned) {
      if (line != "maya-model 1")
        return fail("expected 'maya-model 1' on the first line, found '" + std::string(line) +
                    "'; take a model file written by this version's tools/fit");
      versioned = true;
    } else if (line.front() == '[') {
      if (line.back() != ']') return fail("a section name must end with ']'");
      current = &sections_[std::string(line.substr(1, line.size() - 2))];
    } else {
      if (!current) return fail("a value before the first [section]");
      auto space = line.find(' ');
      std::string key(line.substr(0, space));
      if (key == "source") {
        current->fitted_ = true;
        continue;
      }
      std::vector<double> values;
      std::string_view rest = space == line.npos ? std::string_view{} : line.substr(space + 1);
      while (!rest.empty()) {
        auto begin = rest.find_first_not_of(' ');
        if (begin == rest.npos) break;
        rest.remove_prefix(begin);
        double value{};
        auto [stop, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (code != std::errc{} || !std::isfinite(value))
          return fail("expected numbers after '" + key + "', found '" + std::string(rest) + "'");
        values.push_back(value);
        rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
      }
      current->values_[std::move(key)] = std::move(values);
    }
  }
  if (!versioned) return Error{origin + ": empty; expected a 'maya-model 1' file"};
  return {};
}

Result<ModelFile> ModelFile::parse(std::string_view text, const std::string& origin) {
  ModelFile file;
  if (auto status = file.merge(text, origin); !status) return status.error();
  return file;
}

Result<ModelFile> ModelFile::load(const std::string& directory) {
  std::error_code code;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code))
    if (entry.path().extension() == ".model") paths.push_back(entry.path());
  if (code || paths.empty())
    return Error{"no model files (*.model) in '" + directory +
                 "'; expected the models folder of the catalogue, see MAYA_CATALOG"};
  std::sort(paths.begin(), paths.end());
  ModelFile file;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return Error{"cannot read " + path.string()};
    if (auto status = file.merge(text.str(), path.string()); !status) return status.error();
  }
  return file;
}

Section ModelFile::section(std::string_view family, const Chip& chip) const {
  Section out;
  std::string name(family);
  for (const std::string& scope :
       {name, name + " " + chip.family, name + " " + chip.architecture, name + " " + chip.name}) {
    auto it = sections_.find(scope);
    if (it == sections_.end()) continue;
    for (const auto& [key, values] : it->second.values_) out.values_[key] = values;
    out.fitted_ = out.fitted_ || it->second.fitted_;
  }
  return out;
}

}  // namespace maya::estimate
