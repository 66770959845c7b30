#include "cli/progress.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "predict/run_directory.h"
#include "report/format.h"

namespace maya::cli {
namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Progress::Progress(std::string directory, predict::Options options)
    : directory_(std::move(directory)), options_(std::move(options)) {}

void Progress::look() {
  auto run = predict::read_run(directory_);
  if (!run) return;
  run->file.stopped = true;  // the ranks have come to different places
  auto outcome = predict::predict_recorded(std::move(*run), directory_, options_);
  if (!outcome) return;
  const report::Prediction& prediction = outcome->prediction;
  if (prediction.step && prediction.step->found_by != "whole_run") {
    steps_ = std::max(steps_, static_cast<std::uint32_t>(prediction.step->each_ms.size()));
    step_ms_ = prediction.step->ms;
  }
  for (const report::RankMemory& memory : prediction.memory)
    if (memory.peak_bytes > peak_bytes_)
      peak_bytes_ = memory.peak_bytes, capacity_bytes_ = memory.capacity_bytes;
}

std::string Progress::line(const launch::Moment& moment) {
  constexpr double share = 0.05, shortest = 2;
  if (moment.real_seconds >= next_) {
    const double before = thread_seconds();
    look();
    next_ = moment.real_seconds + std::max(shortest, (thread_seconds() - before) / share);
  }
  const auto seconds = static_cast<int>(moment.real_seconds);
  // Not more than 80 columns.
  std::string text = fmt::format("maya {}:{:02}", seconds / 60, seconds % 60);
  if (steps_ > 0)
    text += fmt::format(" · step {} · predicted {}", steps_, report::human_ms(step_ms_));
  if (peak_bytes_ > 0)
    text += fmt::format(" · {} of {}", report::human_bytes(static_cast<double>(peak_bytes_)),
                        report::human_bytes(static_cast<double>(capacity_bytes_)));
  if (moment.virtual_seconds >= 0 && moment.real_seconds > 0)
    text += fmt::format(" · {:.2g} × real time", moment.virtual_seconds / moment.real_seconds);
  return text;
}

}  // namespace maya::cli
