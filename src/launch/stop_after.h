// `maya run --stop-after N`: watches the recordings while they are written and ends the job when
// every rank has recorded N steady steps.
//
// A thread reads the recordings again and again, never for more than a twentieth of the time. The
// processes are told through the word described in session/stop.h.
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
  // Of the ranks that run; empty: all the job has. To be made before the job starts.
  StopAfter(std::string directory, int steps, std::vector<int> ranks);
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  Status status() const;  // why the job cannot be stopped
  // To be called now and then while the job runs. True from when its processes have been told to
  // leave.
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
  // What merely repeats: for how long it has done so while the program went on repeating it.
  struct Repeating {
    std::uint32_t count{};
    double last{}, seconds{};  // when one more was seen; in all
  };
  std::map<std::string, Repeating> repeating_;
  std::string behind_;  // the recording that had too few: looked at first

  std::atomic<bool> reached_{};
  bool asked_{}, left_{};
  double asked_at_{};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_{};
  std::thread thread_;
};

}  // namespace maya::launch
