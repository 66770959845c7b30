// A timeline laid out for viewing: ranks with tracks, slices on tracks, arrows between slices,
// counters. The viewer formats (Perfetto, Chrome, the HTML page) only write it down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "maya/job.h"
#include "maya/simulate.h"

namespace maya::report {

struct Track {
  enum class Kind : std::uint8_t { overview, host, stream, memory };
  Kind kind{};
  std::int32_t rank{-1};  // -1: of the whole job
  std::int32_t order{};   // within the rank
  std::string name;
};

struct Slice {
  std::uint32_t track{};
  std::uint32_t name{}, category{}, detail{};  // into Scene::texts; 0: none
  std::int64_t start_ns{}, end_ns{};
  std::uint64_t launch_out{}, launch_in{};  // arrow from the launch to the kernel; 0: none
  std::uint64_t joined{};                   // the same on all members of a collective; 0: none
};

struct Sample {
  std::uint32_t track{};
  std::int64_t time_ns{};
  std::int64_t value{};
};

struct Scene {
  std::vector<std::int32_t> ranks;      // shown, ascending
  std::vector<std::string> rank_names;  // "rank 0", or "ranks 0-511" where one stands for all
  std::vector<Track> tracks;
  std::vector<Slice> slices;  // grouped by track, on each in order of time, never overlapping
  std::vector<Sample> samples;
  std::vector<std::string> texts;  // [0] is empty
};

struct SceneOptions {
  // Larger jobs show one rank of each class: what the others did is the same.
  std::int32_t most_ranks{16};
  bool hosts{true};
};
Scene make_scene(const job::Job& job, const simulate::Timeline& timeline,
                 const SceneOptions& options = {});

// Kernels of one graph launch may overlap on their stream: each goes to the first lane that is
// free. Returns for each span (in the given order, by start) its lane.
std::vector<std::uint32_t> lanes(const std::vector<const simulate::Span*>& spans);

// The short name of an op for a slice: the collective's or kernel's kind with what tells it apart.
std::string slice_name(const Op& op);

}  // namespace maya::report
