// The CUDA runtime's types, for CUDA 12 and 13. Where the two differ both layouts exist
// (cudaDeviceProp12, cudaDeviceProp13) and the plain name follows MAYA_CUDA_MAJOR.
#pragma once

#include "abi/cudart_device.h"
#include "abi/cudart_error.h"
#include "abi/cudart_graph.h"
#include "abi/cudart_launch.h"
#include "abi/cudart_memory.h"
