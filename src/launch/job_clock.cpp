#include "launch/job_clock.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "clock/arbiter.h"
#include "clock/system_call.h"
#include "launch/run_directory.h"

namespace maya::launch {

Result<std::unique_ptr<JobClock>> JobClock::start(const std::string& directory, double scale) {
  std::unique_ptr<JobClock> made(new JobClock);
  made->path_ = directory + "/clock";
  // The file of an earlier start of the same job, whose processes have ended.
  std::error_code ignored;
  std::filesystem::remove(made->path_, ignored);
  list_in_manifest(directory, "clock");
  if (auto status = clock::Domain::create(made->path_, scale); !status) return status.error();
  made->domain_ = clock::Domain::attach(made->path_);
  if (made->domain_ == nullptr) return Error{"cannot read " + made->path_};
  made->began_ = clock::real_ns();
  // Signals must be delivered to the thread that supervises the command.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  made->arbiter_ =
      std::thread([job = made.get()] { clock::Arbiter(*job->domain_).run(job->stop_); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

JobClock::~JobClock() {
  stop_ = true;
  if (domain_ != nullptr) domain_->ring();
  if (arbiter_.joinable()) arbiter_.join();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

double JobClock::virtual_seconds() const {
  std::int64_t last = domain_->now();
  for (std::uint32_t i = 0; i < domain_->members(); ++i)
    last = std::max(last, domain_->member(i).latest.load());
  return static_cast<double>(last) * 1e-9;
}

double JobClock::real_seconds() const {
  return static_cast<double>(clock::real_ns() - began_) * 1e-9;
}

std::vector<std::string> JobClock::notes() const {
  std::vector<std::string> lines;
  const double there = virtual_seconds(), here = real_seconds();
  lines.push_back(fmt::format("virtual time: {} ({:.1f} s here)", speed_words(there, here), here));
  if (const auto forced = domain_->header().waits_forced.load(); forced > 0)
    lines.push_back(
        fmt::format("virtual time was blocked {} times for several seconds, because a process was "
                    "stopped or waited for a disk, and was then advanced: times near these moments "
                    "may be wrong",
                    forced));
  return lines;
}

std::string speed_words(double virtual_seconds, double real_seconds) {
  constexpr double shortest = 1e-3;
  std::string text = fmt::format("{:.1f} s simulated", virtual_seconds);
  if (virtual_seconds < shortest || real_seconds < shortest) return text;
  const double faster = virtual_seconds / real_seconds;
  return text + fmt::format(", {:.1f} times {} than real time", faster >= 1 ? faster : 1 / faster,
                            faster >= 1 ? "faster" : "slower");
}

}  // namespace maya::launch
