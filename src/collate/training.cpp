#include <fmt/format.h>

#include <algorithm>

#include "collate/cuts.h"
#include "collate/sequence.h"
#include "maya/collate.h"

namespace maya::collate {
namespace {

// Whether a segment is a training step. Loading weights and clipping can look like updates, so a
// step must also compute gradients, unless its optimizer is a known one.
bool trains(const Sequence& sequence, std::size_t begin, std::size_t end) {
  if (sequence.heavy_between(begin, end) == 0) return false;
  if (sequence.certain_updates()) return true;
  const std::uint16_t program = sequence.thread(sequence.first_heavy());
  for (std::size_t i = begin; i < end; ++i)
    if (sequence.gradient(i) || (sequence.heavy(i) && sequence.thread(i) != program)) return true;
  return false;
}

bool refused(const trace::Recording& recording) {
  return std::any_of(recording.records.begin(), recording.records.end(),
                     [](const trace::Record& r) { return r.kind == trace::Kind::out_of_memory; });
}

// The symbol after each complete step.
Cuts whole_steps(const trace::Recording& recording, const Sequence& sequence, Cuts cuts) {
  if (cuts.size() < 2) return {};
  Cuts ends;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
    if (!ends.empty() || trains(sequence, cuts[k], cuts[k + 1])) ends.push_back(cuts[k + 1]);
  // A process that was killed or ran out of memory may have been in the middle of an update.
  const bool stopped = !recording.complete || refused(recording);
  if (stopped && !ends.empty() && sequence.heavy_between(ends.back(), sequence.size()) == 0)
    ends.pop_back();
  return ends;
}

// Largest number of symbols between the entry of the model (an embedding lookup, a normalization)
// and its first matrix product.
constexpr std::size_t opening = 8;

}  // namespace

struct Training::Rank {
  const trace::Recording* recording{};
  Sequence sequence;
  Cuts ends;               // the symbol after each complete step
  std::size_t entrance{};  // the first symbol of the first forward pass

  // The embedding lookup before the first matrix product, else that product. No layer repeats it.
  void find_entrance() {
    entrance = sequence.first_heavy();
    for (std::size_t i = entrance; i-- > 0 && i + opening >= sequence.first_heavy();) {
      const trace::Record& r = recording->records[sequence.record(i)];
      if (r.kind == trace::Kind::launch &&
          std::holds_alternative<Gather>(recording->ops[r.value].work))
        entrance = i;
    }
  }
  // Number of forward passes that began before symbol `end`, as far as they can be detected.
  std::size_t passes(std::size_t end) const {
    std::size_t count = 0;
    for (std::size_t i = entrance; i < end; ++i)
      count += sequence.exact(i, i + 1) == sequence.exact(entrance, entrance + 1);
    return count;
  }
};

Training::Training(const std::vector<trace::Recording>& recordings) {
  ranks_.reserve(recordings.size());
  for (const trace::Recording& recording : recordings)
    ranks_.push_back({&recording, Sequence(recording), {}, 0});
  for (Rank& rank : ranks_)
    if (rank.sequence.size() > 0) rank.find_entrance();
  // The same method must find steps on every rank. The methods are in the order of `find_steps`.
  const bool certain = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.sequence.certain_updates();
  });
  enum class Method : std::uint8_t { annotation, optimizer, backward };
  std::vector<Method> methods{Method::annotation, Method::optimizer, Method::backward};
  if (!certain) std::swap(methods[1], methods[2]);
  for (Method method : methods) {
    std::size_t fewest = SIZE_MAX;
    std::vector<Cuts> found;
    for (const Rank& rank : ranks_) {
      Cuts cuts = method == Method::annotation  ? cuts_by_annotation(*rank.recording, rank.sequence)
                  : method == Method::optimizer ? cuts_by_optimizer(rank.sequence, 0)
                                                : cuts_by_backward(rank.sequence);
      found.push_back(whole_steps(*rank.recording, rank.sequence, std::move(cuts)));
      fewest = std::min(fewest, found.back().size());
    }
    if (found.empty() || fewest == 0) continue;
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].ends = std::move(found[i]);
    common_steps_ = static_cast<std::uint32_t>(fewest);
    return;
  }
}

Training::~Training() = default;

std::uint32_t Training::end_of_common_steps(std::size_t index) const {
  const Rank& rank = ranks_[index];
  const auto& records = rank.recording->records;
  const auto all = static_cast<std::uint32_t>(records.size());
  if (common_steps_ == 0) return all;
  const std::size_t symbol = rank.ends[common_steps_ - 1];
  std::uint32_t end = symbol < rank.sequence.size() ? rank.sequence.record(symbol) : all;
  // The next step may have opened a group of calls.
  while (end > 0 && end < all && records[end - 1].kind == trace::Kind::group_begin) --end;
  return end;
}

Progress Training::at(std::size_t index, std::uint32_t record) const {
  const Rank& rank = ranks_[index];
  const Sequence& s = rank.sequence;
  const auto& records = rank.recording->records;
  Progress progress;
  if (records.empty()) return progress;
  const bool at_end = record >= records.size();
  const std::uint16_t thread = records[at_end ? records.size() - 1 : record].thread;
  const std::size_t end = at_end ? s.size() : s.at(record);
  progress.steps = static_cast<std::uint32_t>(
      std::upper_bound(rank.ends.begin(), rank.ends.end(), end) - rank.ends.begin());
  if (end == 0) return progress;
  const std::size_t begin = progress.steps > 0 ? rank.ends[progress.steps - 1] : 0;
  progress.first = progress.steps == 0;
  const bool computes = s.heavy_between(0, s.size()) > 0;
  if (!computes || end < rank.entrance) {
    progress.phase = Phase::loading;
    return progress;
  }
  const std::uint16_t program = s.thread(s.first_heavy());
  // The last computation of gradients. An autograd engine computes them in a thread of its own.
  std::size_t last = end;
  for (std::size_t i = end; i-- > begin;)
    if (s.gradient(i) || (s.thread(i) != program && s.heavy(i))) {
      last = i;
      break;
    }
  if (last == end || s.heavy_between(last + 1, end) > 0) {
    progress.phase = Phase::forward;
    progress.first = progress.first && rank.passes(end) < 2;
    return progress;
  }
  const bool own_thread = s.thread(last) != program;
  const bool still =
      own_thread ? thread == s.thread(last) || s.thread(end - 1) == s.thread(last) : end - last < 8;
  // The update begins in the program's thread and allocates its state before it launches a kernel.
  const bool back = own_thread && thread == program;
  progress.phase = still && !back ? Phase::backward : Phase::optimizer;
  return progress;
}

std::string words(const Progress& progress) {
  const std::uint32_t step = progress.steps + 1;
  const bool first = progress.first && progress.steps == 0;
  auto of_step = [&](const char* what) {
    return first ? fmt::format("in the first {}", what)
                 : fmt::format("in the {} of step {}", what, step);
  };
  switch (progress.phase) {
    case Phase::nothing:
      return "before it put any work on the GPU";
    case Phase::loading:
      return "while it set up, before the first forward pass";
    case Phase::forward:
      return !first && progress.steps == 0 ? "in a forward pass, before any optimizer update"
                                           : of_step("forward pass");
    case Phase::backward:
      return of_step("backward pass");
    case Phase::optimizer:
      return of_step("optimizer update");
  }
  return "";
}

}  // namespace maya::collate
