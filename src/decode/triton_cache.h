// Triton keeps what it compiled: <cache>/<hash>/<kernel>.cubin with <kernel>.ptx and <kernel>.ttir
// beside it. The driver is only given the cubin, so these are found by the cubin's own bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace maya::decode {

// The file of that ending (".ptx") beside this cubin; null when no cache holds it.
std::shared_ptr<const std::string> find_triton_file(std::string_view kernel, std::string_view cubin,
                                                    std::string_view ending);

}  // namespace maya::decode
