// What the launcher told this process: the emulated machine, where to record, who it is in the job.
#pragma once

#include <string>
#include <vector>

#include "maya/catalog.h"

namespace maya::session {

// The rank this process has in its job, as its launcher says; -1: it says none.
int rank_in_environment();

struct Settings {
  catalog::Cluster cluster;
  std::string run_directory;     // empty: nothing is recorded
  std::string models_directory;  // for modelled durations inside the run
  int rank{-1}, local_rank{-1}, world_size{1}, node{};
  std::vector<int> devices;            // physical numbers after CUDA_VISIBLE_DEVICES
  std::uint64_t value_limit{1 << 20};  // larger host copies are not kept
  // Integers, which choose and count, are worked out up to this size: a batch of 64 Ki tokens may
  // have a row of experts for each.
  std::uint64_t integer_limit() const { return value_limit * 16; }
  bool log_warnings{}, log_calls{};
  std::string fault;  // why the settings could not be read; the device then does not exist

  static Settings from_environment();
};

}  // namespace maya::session
