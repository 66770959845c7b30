// The places of a process (process-PID.places, docs/FORMAT.md): the line of the user's program and
// the module that issued each record of its recording. Recorded with `maya run --stacks`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/result.h"
#include "maya/trace.h"

namespace maya::report {

struct Frame {
  std::string file, function;
  int line{};
  bool library{};  // of Python or an installed package, not of the user
};

struct Stack {
  std::vector<std::uint32_t> frames;  // indices into Places::frames, innermost first
  std::uint32_t module{};             // index into Places::modules; 0: none
  bool backward{};                    // gradient computation
  bool tied{};  // for a gradient, the frames are those of its forward op; else of backward()
};

inline constexpr std::uint32_t no_stack = 0;

struct Places {
  std::vector<Frame> frames;
  std::vector<std::string> modules;      // [0] is empty
  std::vector<Stack> stacks;             // [0] is empty
  std::vector<std::uint32_t> of_record;  // stack of each record; no_stack: not known
  bool empty() const { return stacks.size() <= 1; }

  // The innermost frame of the user's code, else the innermost frame; null for no_stack.
  const Frame* own(std::uint32_t stack) const;
};

// Fails if the file is not a file of places. Invalid entries are ignored.
Result<Places> read_places(const std::string& path, const trace::Recording& recording);

}  // namespace maya::report
