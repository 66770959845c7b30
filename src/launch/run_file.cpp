#include "launch/run_file.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "base/secrets.h"
#include "launch/installation.h"

namespace maya::launch {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

}  // namespace

std::string now_utc() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string to_toml(const RunFile& run) {
  std::string command;
  for (const auto& word : base::without_secrets(run.command))
    command += (command.empty() ? "" : ", ") + quoted(word);
  utsname system{};
  uname(&system);
  std::string text = fmt::format(
      "version = 1\n"
      "command = [{}]\n"
      "directory = {}\n"
      "cluster = {}\n"
      "gpu = {}\n"
      "nodes = {}\n"
      "gpus_per_node = {}\n"
      "started = {}\n",
      command, quoted(run.directory), quoted(run.cluster), quoted(run.gpu), run.nodes,
      run.gpus_per_node, run.started);
  if (!run.ended.empty()) text += fmt::format("ended = {}\n", run.ended);
  if (run.exit_code)
    text += fmt::format("exit_code = {}\nrecordings = {}\n", *run.exit_code, run.recordings);
  if (run.stop_after > 0)
    text += fmt::format("stop_after = {}\nstopped = {}\n", run.stop_after, run.stopped);
  if (!run.clock.empty()) text += fmt::format("clock = {}\n", quoted(run.clock));
  std::string notes;
  for (const std::string& note : run.notes) notes += (notes.empty() ? "" : ", ") + quoted(note);
  if (!notes.empty()) text += fmt::format("notes = [{}]\n", notes);
  text += fmt::format(
      "\n[recorded_on]\n"
      "maya = {}\n"
      "system = {}\n"
      "processor = {}\n"
      "cores = {}\n",
      quoted(version()), quoted(fmt::format("{} {}", system.sysname, system.release)),
      quoted(processor()), std::thread::hardware_concurrency());
  if (run.benchmark_us > 0) text += fmt::format("benchmark_us = {:.1f}\n", run.benchmark_us);
  return text;
}

}  // namespace maya::launch
