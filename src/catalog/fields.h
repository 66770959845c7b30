// Sets a field of the catalogue by its key. An unknown key or a value of the wrong type is an error
// that lists the known keys or the expected type.
#pragma once

#include <string>
#include <string_view>

#include "catalog/toml_file.h"
#include "catalog/value.h"
#include "maya/catalog.h"
#include "maya/result.h"

namespace maya::catalog {

// Keys are as in the file: "sms", "peak_tflops.bf16". `source` and `sources.*` are ignored.
Status set_gpu(Gpu& gpu, std::string_view key, const Value& value);
Status set_host(Host& host, std::string_view key, const Value& value);
// The keys of the cluster itself and "network.…". Numbers under "network.model." are stored in
// `extra` without that prefix; their keys must exist in the files of catalog/network.
Status set_cluster(Cluster& cluster, std::string_view key, const Value& value);

Result<Gpu> gpu_of(const TomlFile& file);
Result<Host> host_of(const TomlFile& file);

std::string where(const TomlFile& file, const Entry& entry);
std::string stem(const std::string& path);

}  // namespace maya::catalog
