// Computes a prediction from a run directory: reads the recordings, collates, simulates and
// reports. `maya predict` does this, and `maya run` does it after the command has ended.
//
//   predict::Options options;
//   options.cluster = "dgx-a100:2";                       // empty: the cluster of the run
//   options.settings = {{"network.nic_gbps", "200"}};     // --set
//   auto outcome = predict::predict_run("maya-runs/demo", options);
//   fmt::print("{}", report::summary(outcome->prediction, report::style_of_stdout()));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "maya/catalog.h"
#include "maya/job.h"
#include "maya/report.h"
#include "maya/result.h"
#include "maya/simulate.h"
#include "report/page_data.h"

namespace maya::predict {

class Reuse;

// Trace viewers still open a timeline of this size without trouble.
inline constexpr std::uint64_t spans_of_a_report = 1'000'000;

struct Options {
  std::string cluster;                                        // empty: the cluster of the run
  std::vector<std::pair<std::string, std::string>> settings;  // see settings.h
  std::string calibration;     // file of `maya calibrate`; empty: none
  std::string steps{"auto"};   // "auto", a number of steps, or the name of the NVTX range of a step
  bool fold{true};             // false: every rank is its own class (slower, same answer)
  bool keep_spans{false};      // keep every span of the timeline, for traces and the report
  bool what_ifs{false};        // also simulate changes that would help (needs keep_spans)
  Reuse* reuse{nullptr};       // models that several predictions share (reuse.h)
  std::uint64_t most_spans{};  // see simulate::Options
};

struct Outcome {
  job::Job job;
  catalog::Cluster cluster;
  simulate::Timeline timeline;
  report::Prediction prediction;
  // With keep_spans: the time by place in the program, and the memory over time.
  std::vector<report::Places> places;  // of each class
  report::CodeCosts code;
  std::vector<report::MemoryProfile> memory;
  std::vector<report::WhatIf> what_ifs;
  std::string serving;  // JSON (serving.h); empty: no client of a serving engine measured anything

  report::PageData page() const {
    return {prediction, job, timeline, cluster, code, memory, what_ifs, serving};
  }
};

Result<Outcome> predict_run(const std::string& directory, const Options& options = {});

// The same for recordings that have already been read (run_directory.h). `directory` is used in
// messages.
struct Run;
Result<Outcome> predict_recorded(Run run, const std::string& directory, const Options& options);

// The text of prediction.json, with all details if the spans were kept.
std::string to_json(const Outcome& outcome);

// Writes prediction.json, and if the spans were kept also timeline.pftrace and report.html.
Status write_results(const std::string& directory, const Outcome& outcome);

// Reads a whole file. The error names the file.
Status write_file(const std::string& path, const std::string& bytes);
Result<std::string> read_file(const std::string& path);

}  // namespace maya::predict
