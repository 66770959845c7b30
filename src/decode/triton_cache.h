// Triton keeps what it compiled: <cache>/<hash>/<kernel>.cubin with <kernel>.ptx beside it. The
// driver is only given the cubin, so the PTX is found by the cubin's own bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace maya::decode {

// Null when no cache holds this cubin.
std::shared_ptr<const std::string> find_triton_ptx(std::string_view kernel, std::string_view cubin);

}  // namespace maya::decode
