// `maya run --stop-after N`: watches the recordings while they are written and ends the job when
// every rank has recorded N steady steps.
//
// A thread reads the recordings repeatedly, for at most a twentieth of the time. The processes are
// notified through the shared word described in session/stop.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "maya/result.h"

namespace maya::launch {

class StopAfter {
 public:
  // `ranks` are the ranks that run; empty: all ranks of the job. To be created before the job
  // starts.
  StopAfter(std::string directory, int steps, std::vector<int> ranks);
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  Status status() const;  // why the job cannot be stopped
  // To be called periodically while the job runs. Returns true once its processes were told to end.
  bool advance();
  bool asked() const { return asked_; }

 private:
  void watch();
  bool enough();  // every rank has recorded its steps
  bool enough_in(const std::string& recording);
  std::vector<std::string> open_recordings() const;
  void raise(std::uint32_t value);

  std::string directory_;
  std::uint32_t steps_;
  std::vector<int> ranks_;
  std::atomic<std::uint32_t>* word_{};
  std::string failure_;
  // Steps that were detected by repetition only: for how long the program has been repeating them.
  struct Repeating {
    std::uint32_t count{};
    double last{}, seconds{};  // when the last repetition was seen; total time
  };
  std::map<std::string, Repeating> repeating_;
  std::map<std::string, std::size_t> records_read_;  // of each recording, at the next look
  std::string behind_;  // the recording that had too few steps; it is checked first

  std::atomic<bool> reached_{};
  bool asked_{}, left_{};
  double asked_at_{};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_{};
  std::thread thread_;
};

}  // namespace maya::launch
