// The clock of a job in virtual time: its file in the run directory, and the arbiter that advances
// it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clock/domain.h"
#include "maya/result.h"

namespace maya::launch {

class JobClock {
 public:
  // `scale` is the time on the target host divided by the processor time used on this machine.
  static Result<std::unique_ptr<JobClock>> start(const std::string& directory, double scale);
  ~JobClock();
  JobClock(const JobClock&) = delete;
  JobClock& operator=(const JobClock&) = delete;

  double virtual_seconds() const;
  double real_seconds() const;
  // Notes for the user about how virtual time advanced.
  std::vector<std::string> notes() const;

 private:
  JobClock() = default;
  std::string path_;
  clock::Domain* domain_{};
  std::int64_t began_{};
  std::atomic<bool> stop_{};
  std::thread arbiter_;
};

// "12.0 s simulated, 3.1 times faster than real time"
std::string speed_words(double virtual_seconds, double real_seconds);

}  // namespace maya::launch
