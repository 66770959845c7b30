// Kernels: the modules a program brings, their functions, and launches.
//
// A module is a fat binary, cubin or PTX text, registered by the program's start-up code or loaded
// at run time; it is unpacked when one of its kernels is first used. A launch becomes an op (which
// one, src/decode knows) on a stream, or a node of the graph the stream captures into, and changes
// known values as the kernel would (src/values).
#pragma once

#include "session/session.h"

namespace maya::session {

// Modules ----------------------------------------------------------------------------------------

MAYA_EXPORT int module_load(void*& module, const void* data);
MAYA_EXPORT int module_load_file(void*& module, const char* path);
// The bytes of a regular file; false for anything else. The path comes from the program: a folder,
// a device or a FIFO would throw, never end or block.
MAYA_EXPORT bool read_code_file(const char* path, std::string& bytes);
MAYA_EXPORT int module_unload(void* module);
MAYA_EXPORT bool valid_module(void* module);
MAYA_EXPORT int module_function(void* module, const char* name, void*& function);
MAYA_EXPORT int module_variable(void* module, const char* name, std::uint64_t& address,
                                std::uint64_t& bytes);
MAYA_EXPORT int module_kernel_count(void* module, unsigned& count);

// What the program's start-up code registers. Importing torch registers tens of thousands of
// kernels: these calls only take notes.
MAYA_EXPORT void* register_binary(const void* wrapper, int cuda_major);
MAYA_EXPORT void register_function(void* module, const void* host, const char* name);
MAYA_EXPORT void register_variable(void* module, const void* host, const char* name,
                                   std::uint64_t bytes);
// The device variable behind a variable of the host.
MAYA_EXPORT int registered_variable(const void* host, std::uint64_t& address, std::uint64_t& bytes);

// Functions --------------------------------------------------------------------------------------

// The function behind the host's stub, or a handle that the program got for a function; null: none.
MAYA_EXPORT void* registered_function(const void* host);
MAYA_EXPORT bool valid_function(void* function);
// Null if this is no function.
MAYA_EXPORT const char* function_name(void* function);
MAYA_EXPORT void* function_module(void* function);
// Place and size of a parameter in the packed arguments.
MAYA_EXPORT int function_parameter(void* function, std::size_t index, std::size_t* offset,
                                   std::size_t* bytes);

struct KernelAttributes {
  int static_shared{}, local_bytes{}, registers{}, max_threads{}, max_dynamic_shared{}, carveout{};
  int ptx_version{}, binary_version{};
};
// These unpack the kernel's module: its error is theirs.
MAYA_EXPORT int kernel_attributes(void* function, KernelAttributes& attributes);
MAYA_EXPORT int set_kernel_attribute(void* function, int attribute, int value);
MAYA_EXPORT int occupancy(void* function, int block_threads, std::uint64_t dynamic_shared,
                          int& blocks);
MAYA_EXPORT int active_clusters(void* function, int block_threads, std::uint64_t dynamic_shared,
                                unsigned blocks_per_cluster, int& clusters);
MAYA_EXPORT int largest_cluster();  // in blocks, without asking for a non-portable size

// Launches ---------------------------------------------------------------------------------------

// Kernel arguments in one buffer (cuLaunchKernel's `extra`).
struct PackedArguments {
  const void* buffer{};
  std::size_t bytes{};
};

MAYA_EXPORT int launch(void* function, const Geometry& geometry, void* const* arguments,
                       void* stream);
MAYA_EXPORT int launch(void* function, const Geometry& geometry, const PackedArguments& arguments,
                       void* stream);
// By the host's stub, as compiled code launches: invalid_device_function if none is registered.
MAYA_EXPORT int launch_registered(const void* host, const Geometry& geometry,
                                  void* const* arguments, void* stream);

}  // namespace maya::session
