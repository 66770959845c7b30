#include "catalog/model.h"

#include <filesystem>

#include "catalog/fields.h"
#include "catalog/suggest.h"

namespace maya::catalog {

Result<std::map<std::string, double>> model_numbers(const std::string& directory, const Gpu& gpu,
                                                    const std::string& fabric) {
  std::map<std::string, double> numbers;
  bool first = true;
  for (const std::string& name :
       {std::string("nccl"), "gpu-" + gpu.architecture, "gpu-" + gpu.name, "fabric-" + fabric}) {
    std::string path = directory + "/network/" + name + ".toml";
    std::error_code ignored;
    if (!first && !std::filesystem::exists(path, ignored)) continue;
    auto file = read_toml(path);
    if (!file) return file.error();
    for (const Entry& entry : file->entries) {
      if (entry.key == "source" || entry.key.starts_with("sources.")) continue;
      double v{};
      if (auto expected = assign(v, entry.value, Unit::number); !expected.empty())
        return Error{where(*file, entry) + entry.key + ": expected " + expected + ", found " +
                     describe(entry.value)};
      if (!first && !numbers.count(entry.key)) {
        std::vector<std::string> known;
        for (const auto& [k, unused] : numbers) known.push_back(k);
        return Error{where(*file, entry) + "unknown key '" + entry.key + "' of the network model" +
                     suggestion(entry.key, known)};
      }
      numbers[entry.key] = v;
    }
    first = false;
  }
  return numbers;
}

}  // namespace maya::catalog
