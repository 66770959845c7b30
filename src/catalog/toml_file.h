// A TOML file as a flat list of dotted keys with their line numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/value.h"
#include "maya/result.h"

namespace maya::catalog {

struct Entry {
  std::string key;  // "network.nic_gbps"
  Value value;
  int line{};
};

struct TomlFile {
  std::string path;
  std::vector<Entry> entries;
};

Result<TomlFile> read_toml(const std::string& path);
// `path` is used in messages only.
Result<TomlFile> parse_toml(std::string_view text, const std::string& path);

}  // namespace maya::catalog
