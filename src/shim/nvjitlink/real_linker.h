// NVIDIA's own linker, for code that only it can read: LTO IR of libnvvm is compressed and secret.
//
// It needs no GPU. Whoever makes LTO IR (numba) has it installed beside the compiler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/nvrtc.h"

namespace maya::nvjitlink {

struct Input {
  abi::nvJitLinkInputType type{};
  std::string data, name;
};

bool is_lto_ir(const std::string& data);

struct Linked {
  abi::nvJitLinkResult result{};
  std::string image;  // PTX, where the inputs allow it: it tells what a kernel does
  std::string log;
};

Linked link(const std::vector<std::string>& options, const std::vector<Input>& inputs);

}  // namespace maya::nvjitlink
