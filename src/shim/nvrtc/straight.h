// What a kernel without loops reads and writes, told by its source.
//
// PyTorch's TorchScript fuser and many kernels of users go over elements one by one: each thread
// runs the body once, and each access is spelled `tensor[index]`. So the number of different
// accesses, times the threads, is the traffic.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace maya::shim::nvrtc {

struct Touched {
  std::size_t parameter{};
  int reads{}, writes{};  // elements a thread reads and writes
  std::string type;       // of an element
};

// `open` is the parenthesis in front of the kernel's parameters; comments are blanked. Empty where
// the source does not tell: loops, shared memory, pointers that are handed on, macros that may hide
// these.
std::vector<Touched> straight_accesses(std::string_view code, std::size_t open);

}  // namespace maya::shim::nvrtc
