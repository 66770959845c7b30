// What the emulated GPU, its node and the job answer when asked about themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "session/session.h"

namespace maya::session {

// The device -------------------------------------------------------------------------------------

inline constexpr int driver_version = 13020;

// By the driver's numbers (CUdevice_attribute in abi/cuda_device.h), which the runtime shares.
// False for a number nobody knows.
MAYA_EXPORT bool device_attribute(int attribute, int device, int& value);
// 16 bytes; the last two hold the device's number, so that a UUID can be turned back.
MAYA_EXPORT void device_uuid(int device, unsigned char* uuid);
// "0000:1b:00.0"
MAYA_EXPORT void device_bus_id(int device, char* text, std::size_t bytes);
// Number on the node, before CUDA_VISIBLE_DEVICES.
MAYA_EXPORT int physical_device(int device);
// Physical numbers of the devices this process sees.
MAYA_EXPORT const std::vector<int>& visible_devices();
// The program asked for a GPU that its node does not have: the user is told.
MAYA_EXPORT void note_missing_device(int device);

// The job ----------------------------------------------------------------------------------------

MAYA_EXPORT const catalog::Cluster& cluster();
// Why there is no emulated machine; empty: there is one.
MAYA_EXPORT const std::string& machine_fault();
// This process's place in the job. The rank is -1 where no launcher says it.
struct JobPlace {
  int rank{-1}, world_size{1}, node{};
};
MAYA_EXPORT JobPlace place_in_job();
// The ranks that run, ascending; empty: all (`maya run --ranks`, absence.h).
MAYA_EXPORT const std::vector<int>& ranks_that_run();

// Errors -----------------------------------------------------------------------------------------

// Names and sentences of CUDA's error numbers, for both libraries.
struct ErrorText {
  int code;
  const char* runtime;  // "cudaErrorMemoryAllocation"
  const char* driver;   // "CUDA_ERROR_OUT_OF_MEMORY"
  const char* text;     // as a program prints it
};
// Null for a number nobody knows.
MAYA_EXPORT const ErrorText* error_text(int code);

}  // namespace maya::session
