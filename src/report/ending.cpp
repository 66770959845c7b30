#include "report/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <tuple>

#include "report/format.h"

namespace maya::report {
namespace {

const char* what_grew(const collate::Progress& progress) {
  if (progress.steps > 0) return "in the steps before";
  switch (progress.phase) {
    case collate::Phase::nothing:
    case collate::Phase::loading:
      return "before the first forward pass (weights, buffers, data)";
    case collate::Phase::forward:
      return "in the forward pass (activations)";
    case collate::Phase::backward:
      return "in the backward pass (gradients)";
    case collate::Phase::optimizer:
      return "in the optimizer update (its state)";
  }
  return "";
}

// The live device memory at `record`, by the phase in which it grew.
std::vector<MemoryPart> parts_at(const collate::Training& training, std::size_t index,
                                 const std::vector<std::pair<std::uint32_t, std::int64_t>>& changes,
                                 std::uint32_t record) {
  std::vector<MemoryPart> parts;
  std::int64_t before = 0;
  for (const auto& [at, live] : changes) {
    if (at >= record) break;
    const std::string what = what_grew(training.at(index, at));
    auto found = std::find_if(parts.begin(), parts.end(),
                              [&](const MemoryPart& part) { return part.what == what; });
    if (found == parts.end()) found = parts.insert(parts.end(), {what, 0});
    found->bytes += live - before;
    before = live;
  }
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes <= 0; });
  return parts;
}

// A linear layer of the forward pass multiplies by its weights, an m×k matrix. With autocast they
// are stored in a wider type and converted by a kernel with the same number of elements.
double weight_bytes(const trace::Recording& recording, const Gemm& gemm) {
  const auto elements = static_cast<double>(gemm.m) * static_cast<double>(gemm.k);
  for (const Op& op : recording.ops)
    if (const auto* cast = std::get_if<Pointwise>(&op.work); cast && cast->inputs <= 1 &&
                                                             cast->elements == gemm.m * gemm.k &&
                                                             cast->bytes_read > cast->bytes_written)
      return static_cast<double>(cast->bytes_read);
  return elements * bits(gemm.a) / 8;
}

// Estimates the memory of the whole forward pass: the weights that it has not used yet are assumed
// to need as much memory per byte as those that it has used. 0 if the weights cannot be followed:
// sharded weights are gathered when they are used.
std::int64_t forward_need(const trace::Recording& recording, std::uint32_t record,
                          const std::vector<MemoryPart>& parts) {
  double loaded = 0, grown = 0, used = 0;
  for (const MemoryPart& part : parts)
    (part.what == what_grew({collate::Phase::forward, 0, true}) ? grown : loaded) +=
        static_cast<double>(part.bytes);
  std::map<std::uint32_t, double> weights;  // by op
  for (std::uint32_t i = 0; i < record && i < recording.records.size(); ++i) {
    const trace::Record& r = recording.records[i];
    if (r.kind != trace::Kind::launch) continue;
    const auto* gemm = std::get_if<Gemm>(&recording.ops[r.value].work);
    if (gemm == nullptr || gemm->batch != 1) continue;
    const auto [found, fresh] = weights.try_emplace(r.value, 0);
    if (fresh) found->second = weight_bytes(recording, *gemm);
    used += found->second;
  }
  constexpr double least = 0.02;  // share of the weights that must have been used for an estimate
  if (loaded <= 0 || grown <= 0 || used < least * loaded || used > loaded) return 0;
  return static_cast<std::int64_t>(loaded + grown * loaded / used);
}

std::string bytes(std::int64_t value) { return human_bytes(static_cast<double>(value)); }

}  // namespace

const RankEnding* Ending::find(std::int32_t rank) const {
  for (const RankEnding& one : ranks)
    if (one.rank == rank) return &one;
  return nullptr;
}

const RankEnding* Ending::first() const {
  auto order = [](const RankEnding& one) {
    return std::tuple(!one.memory.refusal, one.progress.steps, one.progress.phase, one.rank);
  };
  const auto least = std::min_element(
      ranks.begin(), ranks.end(),
      [&](const RankEnding& a, const RankEnding& b) { return order(a) < order(b); });
  return least == ranks.end() ? nullptr : &*least;
}

Ending ending_of(const std::vector<trace::Recording>& recordings, const collate::Training& training,
                 int exit_code) {
  Ending ending;
  ending.exit_code = exit_code;
  ending.whole_steps = training.common_steps();
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const trace::Recording& recording = recordings[i];
    ending.killed |= !recording.complete;
    RankEnding one;
    one.rank = recording.identity.rank;
    std::vector<std::pair<std::uint32_t, std::int64_t>> changes;
    one.memory = memory_use(recording, &changes);
    if (const auto& refusal = one.memory.refusal) {
      one.progress = training.at(i, refusal->record);
      one.parts = parts_at(training, i, changes, refusal->record);
      if (one.progress.phase == collate::Phase::forward && one.progress.steps == 0)
        one.forward_bytes = forward_need(recording, refusal->record, one.parts);
    } else {
      one.progress = training.at(i);
    }
    ending.ranks.push_back(std::move(one));
  }
  return ending;
}

void keep_common_steps(std::vector<trace::Recording>& recordings,
                       const collate::Training& training) {
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const std::uint32_t end = training.end_of_common_steps(i);
    if (end >= recordings[i].records.size()) continue;
    recordings[i].records.resize(end);
    recordings[i].complete = false;
  }
}

std::string headline(const OutOfMemory& oom) {
  if (!oom.during_run)
    return fmt::format("Does not fit: rank {} needs {} more than this GPU's {}", oom.rank,
                       bytes(oom.requested_bytes), bytes(oom.capacity_bytes));
  return fmt::format("Does not fit: rank {} requested {} with {} of {} in use{}{}", oom.rank,
                     bytes(oom.requested_bytes), bytes(oom.in_use_bytes), bytes(oom.capacity_bytes),
                     oom.where.empty() ? "" : ", ", oom.where);
}

std::string headline(const Ending& ending) {
  const int code = ending.exit_code;
  const bool interrupted = code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP;
  const std::string how = interrupted ? fmt::format("Interrupted (code {})", code)
                          : code != 0 ? fmt::format("Failed: the command ended with code {}", code)
                                      : "Killed: a process of the command was killed";
  const RankEnding* first = ending.first();
  if (first == nullptr) return how;
  const std::string where = collate::words(first->progress);
  return fmt::format("{} {}{}", how, where,
                     ending.ranks.size() > 1 ? fmt::format(" of rank {}", first->rank) : "");
}

std::vector<std::string> explanation(const OutOfMemory& oom) {
  std::vector<std::string> lines;
  if (!oom.during_run) return lines;
  std::string missing = fmt::format("at least {} too much", bytes(oom.missing_bytes));
  if (oom.estimated_missing_bytes)
    missing += fmt::format(
        "; about {} for the forward pass, if the rest of the model needs as much memory per weight "
        "as the part that ran; gradients and optimizer state are not included",
        bytes(*oom.estimated_missing_bytes));
  lines.push_back(missing);
  std::string parts;
  for (const MemoryPart& part : oom.in_use)
    parts +=
        fmt::format("{}{} {}", parts.empty() ? "in use: " : "; ", bytes(part.bytes), part.what);
  if (!parts.empty()) lines.push_back(parts);
  return lines;
}

}  // namespace maya::report
