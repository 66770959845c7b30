// Describes a sequence as nested repetitions: a a a b c b c b c d is a³ (b c)³ d.
//
// The step of a pipeline stage is such a sequence: warm-up forward passes, pairs of forward and
// backward passes, the remaining backward passes, some of them nested in rounds. Stages with the
// same work have the same nesting and differ only in the counts, each of which is a linear function
// of the number of the stage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace maya::collate {

struct Repetition {
  std::uint32_t letter{};        // what is repeated if `body` is empty
  std::vector<Repetition> body;  // else what is repeated
  std::uint64_t count{1};
};

// Greedy from left to right: uses the repetition that covers most letters, then continues inside
// the repeated part.
std::vector<Repetition> repetitions_of(std::span<const std::uint32_t> letters);

// Describes another sequence with the same nesting but its own counts, which may be one or zero.
// nullopt if the sequence does not have this nesting.
std::optional<std::vector<Repetition>> counted(const std::vector<Repetition>& nesting,
                                               std::span<const std::uint32_t> letters);

// Extrapolates the counts of stages `at_a` and `at_b` linearly to stage `at`. nullopt if the two
// have different nestings, or if a count would be negative or not an integer.
std::optional<std::vector<Repetition>> continued(const std::vector<Repetition>& a,
                                                 std::int64_t at_a,
                                                 const std::vector<Repetition>& b,
                                                 std::int64_t at_b, std::int64_t at);

// Returns positions in the sequence of `model` whose letters form the sequence `wanted`, which has
// the same nesting with other counts. First repetitions map to first ones and last repetitions to
// last ones, so that work that differs at the ends of a loop stays at its ends.
std::vector<std::uint32_t> positions_in(const std::vector<Repetition>& model,
                                        const std::vector<Repetition>& wanted);

}  // namespace maya::collate
