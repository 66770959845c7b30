// The CUDA driver's types. The driver has no major: libcuda.so.1 serves every toolkit.
#pragma once

#include "abi/cuda_device.h"
#include "abi/cuda_error.h"
#include "abi/cuda_launch.h"
#include "abi/cuda_memory.h"
