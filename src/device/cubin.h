// Device code as programs carry it: fat binaries, the cubins and PTX texts inside, and what they
// say of each kernel (parameters, registers, shared memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace maya::device {

struct KernelCode {
  std::string name;
  std::vector<std::uint16_t> parameter_offsets, parameter_sizes;
  std::uint16_t registers{};
  std::uint32_t static_shared{};
  std::uint32_t local_bytes{};  // of a thread: what did not fit into registers, arrays
  std::uint32_t max_threads{};  // __launch_bounds__; 0: none
  // Of the image it came from, which may be older than the GPU: libraries choose their launch
  // parameters by it (CUB). Code from PTX is built for the GPU itself.
  int ptx_version{}, binary_version{};
};

// One loadable image for the emulated GPU: an unpacked cubin or PTX text.
struct Image {
  std::vector<char> bytes;
  bool is_ptx{};
  int capability{};  // it was built for
  std::string_view ptx() const {
    return is_ptx ? std::string_view(bytes.data(), bytes.size()) : std::string_view();
  }
};

// No module is larger.
inline constexpr std::size_t any_room = std::size_t{1} << 32;

enum class ImageFault : std::uint8_t { none, no_kernel_image, invalid };

struct ImageSet {
  std::vector<Image> images;  // best first; more than one when a container has "a" variants
  ImageFault fault{ImageFault::none};
};

// Where the fat binary is that a wrapper (the structure compiled code registers) points to; `data`
// itself if it is none.
const void* unwrap(const void* data, std::size_t room = any_room);

// Bytes of the module that starts at `data`, from its own headers (fat binary, ELF, PTX text).
// 0: none of these, or damaged. `data` is the program's own memory, as cuModuleLoadData takes it,
// and nothing behind `room` bytes is read.
std::size_t image_bytes(const void* data, std::size_t room = any_room);

// Picks what a GPU of this capability (80, 90, 100 …) would run: SASS of the same major version and
// at most the same minor, "a" variants only for their exact capability; else PTX for at most that
// capability.
ImageSet unpack(const void* data, int capability, std::size_t room = any_room);

// The kernels of one image, by name.
std::unordered_map<std::string, KernelCode> kernels(const Image& image);

// The machine code of one kernel of a cubin; empty: none, or of GPUs before Volta.
std::string_view code_of(std::string_view cubin, std::string_view kernel);

// Sizes of the variables (`__device__`, `__constant__`) of one image.
std::unordered_map<std::string, std::uint64_t> variables(const Image& image);

}  // namespace maya::device
