// The places of a process (process-PID.places, docs/FORMAT.md): which line of the user's program
// and which module asked for each record of its recording. Recorded with `maya run --stacks`.
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
  bool library{};  // of Python or an installed package, not the user's own
};

struct Stack {
  std::vector<std::uint32_t> frames;  // into Places::frames, the innermost first
  std::uint32_t module{};             // into Places::modules; 0: none
  bool backward{};                    // a gradient: the frames are those of its forward op …
  bool tied{};                        // … or, where that is not known, of the call of backward()
};

inline constexpr std::uint32_t no_stack = 0;

struct Places {
  std::vector<Frame> frames;
  std::vector<std::string> modules;      // [0] is empty
  std::vector<Stack> stacks;             // [0] is empty
  std::vector<std::uint32_t> of_record;  // stack of each record; no_stack: not known
  bool empty() const { return stacks.size() <= 1; }

  // The innermost frame of the user's own code, else the innermost; none for no_stack.
  const Frame* own(std::uint32_t stack) const;
};

// Fails on a file that is not one of places; entries that cannot be are left out.
Result<Places> read_places(const std::string& path, const trace::Recording& recording);

}  // namespace maya::report
