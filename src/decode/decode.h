// A kernel launch becomes an op.
//
// Kernels are recognised by family (one file each, listed in families.cpp). A family looks at the
// mangled name once, when the kernel is first launched, and prepares a Decoder: the decoder says
// which argument bytes decide the op (its key), so that a later launch with the same key and
// geometry is answered from a table without decoding again, and turns one launch's arguments into
// an Op plus the memory it reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "maya/op.h"
#include "values/semantics.h"

namespace maya::decode {

// What is known of a kernel before any launch.
struct Kernel {
  std::string mangled;    // as registered
  std::string demangled;  // filled by prepare()
  std::vector<std::uint16_t> parameter_offsets,
      parameter_sizes;  // from the cubin (KPARAM_INFO); may be empty
  std::uint16_t registers{};
  std::uint32_t static_shared{};
  std::string_view ptx;    // PTX text when the module carries it, else empty
  std::string_view image;  // the cubin, when it was loaded by itself (Triton): its PTX is looked
                           // for in Triton's cache
  std::string_view ttir;   // Triton's intermediate code, else it is looked for there too
  int capability{80};      // of the emulated GPU: 80, 90, …
  // Of its machine code, where the module carries it: bytes a thread keeps outside of registers,
  // and bytes that it moves there and back for each byte of global memory.
  std::uint32_t stack{};
  double local_per_global{};
  std::vector<bool> read_only;  // filled by prepare(): parameters whose types promise not to write
};

struct Launch {
  const Kernel* kernel{};
  Geometry geometry;
  void* const* arguments{};  // one pointer per parameter
  // Bytes of the allocation behind a device address, from that address on; 0: not a device address.
  std::uint64_t (*extent)(std::uint64_t address){};
  // Known host copy of device bytes [address, address+size) or null when unknown (see
  // values/known_bytes.h).
  const void* (*known)(std::uint64_t address, std::uint64_t size){};
  // False: no byte of the range is known. May be null, and may say true too often.
  bool (*possible)(std::uint64_t address, std::uint64_t size){};
};

// What a launch touches, for the tracking of known values. Families fill what they are sure of.
struct Access {
  std::uint64_t address{}, bytes{};
  bool write{};
  bool at_least{};  // the kernel's name does not tell how far a plain pointer reaches
};

using values::most_supposed;
using values::Semantics;

struct Decoded {
  Op op;                         // without its name, which may be long and is the kernel's
  std::vector<Access> accesses;  // empty: unknown
  Semantics semantics;
  bool recognised{true};  // false: OtherKernel fallback
  int ranks{};            // of a kernel in which ranks wait for each other: how many
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Appends the argument bytes that decide the op (sizes, not addresses). Cheap: called every
  // launch. At most 256 bytes. Default families copy whole scalar parameters.
  virtual std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const = 0;
  virtual Decoded decode(const Launch& launch) const = 0;
  // Accesses and semantics may depend on addresses: asked each launch only while values matter
  // there.
  virtual bool touches_values() const { return false; }
  // Touches them only in launches with so few elements that a program may look at them, such as
  // counters; 0: does not.
  virtual std::int64_t touches_values_up_to() const { return 0; }
  virtual std::int64_t elements(const Launch&) const { return INT64_MAX; }
  // One per parameter, where the code tells more than the types of its parameters; else empty.
  virtual std::vector<bool> read_only() const { return {}; }
};

// Never null: falls back to the unknown-kernel decoder.
std::unique_ptr<Decoder> prepare(Kernel& kernel);

}  // namespace maya::decode
