// A sequence as nested repetitions: a a a b c b c b c d is a³ (b c)³ d.
//
// The step of a pipeline stage is such a sequence: warm-up forwards, pairs of forward and backward,
// the remaining backwards, some of it nested in rounds. Stages that do the same work have the same
// nesting, and only the counts differ: each of them is linear in the stage's place in the pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace maya::collate {

struct Repetition {
  std::uint32_t letter{};        // where `body` is empty
  std::vector<Repetition> body;  // else this, `count` times
  std::uint64_t count{1};
};

// Left to right, taking the repetition that covers most; inside a repeated part again.
std::vector<Repetition> repetitions_of(std::span<const std::uint32_t> letters);

// Another sequence in terms of the same nesting: with its own counts, which may be one or none.
// Nothing if it does not nest so.
std::optional<std::vector<Repetition>> counted(const std::vector<Repetition>& nesting,
                                               std::span<const std::uint32_t> letters);

// Counts of `a` and `b` continued to another place of the pipeline. Nothing if the two nest
// differently, or if a count would not be a whole number of repetitions there, or negative.
std::optional<std::vector<Repetition>> continued(const std::vector<Repetition>& a,
                                                 std::int64_t at_a,
                                                 const std::vector<Repetition>& b,
                                                 std::int64_t at_b, std::int64_t at);

// Positions in the sequence of `model` whose letters, one after the other, are `wanted`, which
// nests as `model` does with other counts. First repetitions stand for first ones and last for last
// ones: what a loop does differently at its ends stays at its ends.
std::vector<std::uint32_t> positions_in(const std::vector<Repetition>& model,
                                        const std::vector<Repetition>& wanted);

}  // namespace maya::collate
