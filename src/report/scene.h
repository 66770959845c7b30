// A timeline prepared for viewers: ranks with tracks, slices on tracks, arrows between slices, and
// counters. The formats (Perfetto, Chrome, the HTML page) only serialize it.
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
  std::int32_t rank{-1};  // -1: the whole job
  std::int32_t order{};   // within the rank
  std::string name;
};

struct Slice {
  std::uint32_t track{};
  std::uint32_t name{}, category{}, detail{};  // indices into Scene::texts; 0: none
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
  std::vector<std::int32_t> ranks;      // the ranks that are shown, ascending
  std::vector<std::string> rank_names;  // "rank 0", or "ranks 0-511" if one represents all of them
  std::vector<Track> tracks;
  std::vector<Slice> slices;  // grouped by track; on a track in order of time, without overlap
  std::vector<Sample> samples;
  std::vector<std::string> texts;  // [0] is empty
};

struct SceneOptions {
  // Larger jobs show one rank of each class, because the others do identical work.
  std::int32_t most_ranks{16};
  bool hosts{true};
};
Scene make_scene(const job::Job& job, const simulate::Timeline& timeline,
                 const SceneOptions& options = {});

// Kernels of one graph launch may overlap on their stream. Each is assigned to the first free lane.
// Returns the lane of each span, in the given order (by start).
std::vector<std::uint32_t> lanes(const std::vector<const simulate::Span*>& spans);

// The short name of an op for a slice: its kind and its sizes.
std::string slice_name(const Op& op);

}  // namespace maya::report
