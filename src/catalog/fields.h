// Setting a field of the catalogue by its key, strictly: an unknown key or a value of another kind
// is an error that says what is known or expected.
#pragma once

#include <string>
#include <string_view>

#include "catalog/toml_file.h"
#include "catalog/value.h"
#include "maya/catalog.h"
#include "maya/result.h"

namespace maya::catalog {

// Keys as in the file: "sms", "peak_tflops.bf16". `source` and `sources.*` are texts for readers.
Status set_gpu(Gpu& gpu, std::string_view key, const Value& value);
Status set_host(Host& host, std::string_view key, const Value& value);
// The cluster's own keys and "network.…"; further numbers under "network.model." go to `extra`
// without that prefix, and must be known there (the files of catalog/network name them).
Status set_cluster(Cluster& cluster, std::string_view key, const Value& value);

Result<Gpu> gpu_of(const TomlFile& file);
Result<Host> host_of(const TomlFile& file);

std::string where(const TomlFile& file, const Entry& entry);
std::string stem(const std::string& path);

}  // namespace maya::catalog
