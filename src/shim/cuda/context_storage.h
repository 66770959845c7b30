// What libraries keep with a context, by a key of theirs: a table of functions that the CUDA
// runtime uses (export_table.cpp).
#pragma once

#include "abi/cuda.h"

namespace maya::shim::cuda {

using StorageEnds = void (*)(abi::CUcontext context, void* key, void* value);

// A null context is the current one. Results are the driver's codes.
int put_in_context(abi::CUcontext context, void* key, void* value, StorageEnds ends);
int remove_from_context(abi::CUcontext context, void* key);
int get_from_context(void** value, abi::CUcontext context, void* key);

// The context is reset or destroyed: whoever keeps something with it is told.
void empty_context(abi::CUcontext context);

}  // namespace maya::shim::cuda
