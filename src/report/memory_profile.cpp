#include "report/memory_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "report/memory.h"
#include "report/passes.h"

namespace maya::report {
namespace {

using trace::Kind;

constexpr std::uint32_t never = 0xffffffff;

std::int64_t& of(Amounts& amounts, Holds kind) { return amounts[static_cast<std::size_t>(kind)]; }

// A block of memory that PyTorch's allocator handed out.
struct Piece {
  std::uint64_t address{};
  std::int64_t bytes{};
  std::uint32_t allocated{}, released{never};  // records
  std::uint16_t by{}, released_by{}, pool{};   // threads, stream
  Holds kind{Holds::temporary};
};

std::vector<Piece> pieces_of(const trace::Recording& recording) {
  std::vector<Piece> pieces;
  std::unordered_map<std::uint64_t, std::size_t> open;
  trace::Wide wide{};
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& record = recording.records[i];
    if (record.kind == Kind::wide) {
      wide = std::bit_cast<trace::Wide>(record);
      continue;
    }
    if (record.kind == Kind::tensor_allocate) {
      const std::uint64_t address = std::uint64_t{wide.x} << 32 | record.value;
      const auto bytes =
          static_cast<std::int64_t>(std::min<std::uint64_t>(wide.y, std::uint64_t{1} << 50));
      open[address] = pieces.size();
      pieces.push_back({address, bytes, i, never, record.thread, 0, record.stream});
    } else if (record.kind == Kind::tensor_release) {
      const std::uint64_t address = std::uint64_t{record.aux} << 32 | record.value;
      if (const auto found = open.find(address); found != open.end()) {
        pieces[found->second].released = i;
        pieces[found->second].released_by = record.thread;
        open.erase(found);
      }
    }
    wide = {};
  }
  return pieces;
}

// Where a step's backward passes begin and end.
struct StepPasses {
  std::uint32_t begin{}, end{}, first_backward{}, behind_backward{};
};

class Classifier {
 public:
  Classifier(const job::Job& job, const job::RankClass& one, const Places& places)
      : places_(places) {
    const trace::Recording& recording = one.recording;
    const Passes passes(job, one);
    const auto size = static_cast<std::uint32_t>(recording.records.size());
    std::vector<std::uint32_t> begin = one.step_begin;
    whole_steps_ = begin.size() >= 2;
    if (!whole_steps_) begin = {0, size};
    for (std::size_t k = 0; k + 1 < begin.size(); ++k) {
      StepPasses step{std::min(begin[k], size), std::min(begin[k + 1], size), never, 0};
      each_work(recording, step.begin, step.end,
                [&](const trace::Record& record, std::uint32_t index) {
                  if (record.value >= recording.ops.size() ||
                      !passes.backward(index, recording.ops[record.value]))
                    return;
                  if (std::holds_alternative<OptimizerStep>(recording.ops[record.value].work))
                    return;
                  step.first_backward = std::min(step.first_backward, index);
                  step.behind_backward = index + 1;
                });
      steps_.push_back(step);
    }
    backward_threads_.resize(1 << 16);
    each_work(recording, 0, size, [&](const trace::Record& record, std::uint32_t index) {
      if (record.value < recording.ops.size() &&
          passes.backward(index, recording.ops[record.value]))
        backward_threads_[recording.records[index].thread] = true;
    });
  }

  Holds operator()(const Piece& piece) const {
    if (distributed(piece.allocated)) return Holds::communication;
    // In a run that ended in its first step nothing was released: memory that modules allocate when
    // they are called is activations, memory that is allocated outside of them is the model.
    if (!whole_steps_ && kept(piece) && !backward_threads_[piece.by])
      return in_module(piece.allocated) ? Holds::activations : Holds::parameters;
    if (steps_.empty() || piece.allocated < steps_.front().begin)
      return kept(piece) ? Holds::parameters : Holds::temporary;
    auto step =
        std::upper_bound(steps_.begin(), steps_.end(), piece.allocated,
                         [](std::uint32_t at, const StepPasses& s) { return at < s.begin; });
    --step;
    const bool in_backward = backward_threads_[piece.by] && piece.allocated >= step->first_backward;
    if (in_backward && piece.allocated < step->behind_backward)
      return piece.released >= step->behind_backward ? Holds::gradients : Holds::temporary;
    if (step->behind_backward > 0 && piece.allocated >= step->behind_backward)
      return kept(piece) ? Holds::optimizer_state : Holds::temporary;
    if (kept(piece) && step == steps_.begin()) return Holds::parameters;  // created on first use
    return piece.released >= step->first_backward ? Holds::activations : Holds::temporary;
  }

 private:
  bool kept(const Piece& piece) const {
    return piece.released == never || steps_.empty() || piece.released >= steps_.back().end;
  }
  bool in_module(std::uint32_t record) const {
    return record < places_.of_record.size() &&
           places_.stacks[places_.of_record[record]].module != 0;
  }
  bool distributed(std::uint32_t record) const {
    if (record >= places_.of_record.size()) return false;
    const std::uint32_t stack = places_.of_record[record];
    if (stack >= places_.stacks.size() || places_.stacks[stack].backward) return false;
    const auto& frames = places_.stacks[stack].frames;
    if (frames.empty()) return false;
    // Only the innermost frame: outer frames of torch.distributed (DDP, FSDP) call the model.
    const std::string& file = places_.frames[frames[0]].file;
    return file.find("/torch/distributed/") != std::string::npos ||
           file.find("/torch/nn/parallel/") != std::string::npos;
  }

  const Places& places_;
  std::vector<StepPasses> steps_;
  bool whole_steps_{};
  std::vector<bool> backward_threads_;
};

// When each record was issued, in microseconds.
std::vector<double> times_of(const simulate::Timeline& timeline, std::uint32_t rank_class,
                             std::size_t records) {
  std::vector<double> us(records);
  for (const simulate::HostSpan& span : timeline.host_spans)
    if (span.rank_class == rank_class && span.record < records)
      us[span.record] = std::max(us[span.record], static_cast<double>(span.end_ns) / 1000);
  for (std::size_t i = 1; i < us.size(); ++i) us[i] = std::max(us[i], us[i - 1]);
  return us;
}

std::int64_t total(const Amounts& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0});
}

// The allocator keeps what it has reserved: of equal totals, the one with less of it idle is more.
bool fuller(const Amounts& a, const Amounts& b) {
  constexpr auto cached = static_cast<std::size_t>(Holds::cached);
  return std::pair(total(a), -a[cached]) > std::pair(total(b), -b[cached]);
}

constexpr std::size_t most_points = 480;

// Reduces the number of points: keeps the highest of each interval, beginning shortly before the
// first step. Initialization takes longer than the steps and changes little.
std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> all, const simulate::Timeline& timeline) {
  if (!timeline.steps.empty()) {
    const double begin = static_cast<double>(timeline.steps.front().start_ns) / 1000;
    const double end = static_cast<double>(timeline.end_ns) / 1000;
    const double from = begin - 0.05 * (end - begin);
    auto first = std::find_if(all.begin(), all.end(),
                              [&](const MemoryPoint& point) { return point.us >= from; });
    if (first != all.begin() && first != all.end()) {
      --first;
      first->us = from;
      all.erase(all.begin(), first);
    }
  }
  if (all.size() <= most_points) return all;
  std::vector<MemoryPoint> kept;
  const double first = all.front().us;
  const double width = std::max((all.back().us - first) / most_points, 1e-9);
  double bucket = -1;
  for (const MemoryPoint& point : all) {
    const double at = std::floor((point.us - first) / width);
    if (at != bucket)
      kept.push_back(point), bucket = at;
    else if (fuller(point.bytes, kept.back().bytes))
      kept.back().bytes = point.bytes;
  }
  return kept;
}

std::string who(const Places& places, std::uint32_t record) {
  if (record >= places.of_record.size()) return "";
  const std::uint32_t stack = places.of_record[record];
  if (stack == no_stack || stack >= places.stacks.size()) return "";
  if (places.stacks[stack].module != 0) return places.modules[places.stacks[stack].module];
  const Frame* own = places.own(stack);
  if (own == nullptr) return "";
  const std::size_t slash = own->file.rfind('/');
  return fmt::format("{}:{} {}",
                     slash == std::string::npos ? own->file : own->file.substr(slash + 1),
                     own->line, own->function);
}

void charge_place(const Places& places, const Piece& piece, MemoryProfile& profile) {
  if (piece.allocated >= places.of_record.size()) return;
  const std::uint32_t stack = places.of_record[piece.allocated];
  if (stack == no_stack || stack >= places.stacks.size()) return;
  if (const std::uint32_t module = places.stacks[stack].module)
    profile.modules[places.modules[module]] += piece.bytes;
  if (const Frame* own = places.own(stack)) profile.lines[{own->file, own->line}] += piece.bytes;
}

MemoryProfile profile_of(const job::Job& job, const simulate::Timeline& timeline, std::uint32_t c,
                         const catalog::Gpu& gpu, const Places& places) {
  const job::RankClass& one = job.classes[c];
  const trace::Recording& recording = one.recording;
  MemoryProfile profile;
  profile.ranks = one.ranks;
  const bool same_gpu =
      recording.identity.gpu == gpu.name && recording.identity.memory_capacity > 0;
  const auto context =
      same_gpu ? static_cast<std::int64_t>(recording.identity.memory_context) : gpu.context_bytes;
  profile.capacity_bytes =
      same_gpu ? static_cast<std::int64_t>(recording.identity.memory_capacity) + context
               : gpu.memory_bytes;

  std::vector<Piece> pieces = pieces_of(recording);
  profile.detailed = !pieces.empty();
  const Classifier kind_of(job, one, places);
  struct Event {
    std::uint32_t record;
    std::size_t piece;
    bool release;
  };
  std::vector<Event> events;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    pieces[p].kind = kind_of(pieces[p]);
    events.push_back({pieces[p].allocated, p, false});
    if (pieces[p].released != never) events.push_back({pieces[p].released, p, true});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.record < b.record; });

  std::vector<std::pair<std::uint32_t, std::int64_t>> changes;
  const MemoryUse use = memory_use(recording, &changes);
  std::vector<std::pair<std::uint32_t, std::int64_t>> nccl;  // (record, bytes) of communicators
  {
    std::unordered_map<std::uint32_t, std::int64_t> sizes;
    std::int64_t live = 0;
    trace::Wide wide{};
    for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
      const trace::Record& record = recording.records[i];
      if (record.kind == Kind::wide) {
        wide = std::bit_cast<trace::Wide>(record);
        continue;
      }
      const bool communicator =
          wide.x == static_cast<std::uint32_t>(trace::MemoryKind::communicator);
      if (record.kind == Kind::allocate && communicator) {
        sizes[record.value] = static_cast<std::int64_t>(wide.y & 0xffffffffffff);
        nccl.emplace_back(i, live += sizes[record.value]);
      } else if (record.kind == Kind::release && sizes.count(record.value) > 0) {
        nccl.emplace_back(i, live -= sizes[record.value]);
        sizes.erase(record.value);
      }
      wide = {};
    }
  }

  std::vector<double> us = times_of(timeline, c, recording.records.size());
  profile.by_order = timeline.host_spans.empty();
  if (profile.by_order) std::iota(us.begin(), us.end(), 0.0);
  std::vector<MemoryPoint> all;
  Amounts live{};
  of(live, Holds::context) = context;
  std::int64_t taken = 0, handed_out = 0, by_nccl = 0;
  std::size_t next_change = 0, next_event = 0, next_nccl = 0;
  std::int64_t best_total = -1, best_pieces = -1;
  std::uint32_t peak_record = 0;
  const std::uint32_t refusal = use.refusal ? use.refusal->record : never;
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    bool changed = false;
    for (; next_change < changes.size() && changes[next_change].first == i; ++next_change)
      taken = changes[next_change].second, changed = true;
    for (; next_nccl < nccl.size() && nccl[next_nccl].first == i; ++next_nccl)
      by_nccl = nccl[next_nccl].second, changed = true;
    for (; next_event < events.size() && events[next_event].record == i; ++next_event) {
      const Event& event = events[next_event];
      const std::int64_t bytes = pieces[event.piece].bytes * (event.release ? -1 : 1);
      of(live, pieces[event.piece].kind) += bytes;
      handed_out += bytes;
      changed = true;
    }
    if (!changed && i != refusal) continue;
    MemoryPoint point{us[i], live};
    of(point.bytes, Holds::communication) += by_nccl;
    const std::int64_t rest = std::max<std::int64_t>(0, taken - by_nccl - handed_out);
    of(point.bytes, profile.detailed ? Holds::cached : Holds::program) = rest;
    const std::int64_t sum = total(point.bytes);
    if (i == refusal ||
        (!profile.refused && std::tie(sum, handed_out) > std::tie(best_total, best_pieces))) {
      best_total = sum, best_pieces = handed_out, peak_record = i;
      profile.peak = point;
      profile.refused = i == refusal;
    }
    all.push_back(point);
  }
  profile.points = thinned(std::move(all), timeline);
  profile.peak_record = peak_record;

  std::map<std::pair<Holds, std::string>, std::int64_t> holders;
  for (const Piece& piece : pieces)
    if (piece.allocated <= peak_record && piece.released > peak_record) {
      charge_place(places, piece, profile);
      if (std::string name = who(places, piece.allocated); !name.empty())
        holders[{piece.kind, name}] += piece.bytes;
    }
  for (const auto& [key, bytes] : holders)
    profile.holders.push_back({key.first, key.second, bytes});
  std::stable_sort(profile.holders.begin(), profile.holders.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  constexpr std::size_t most_holders = 40;
  if (profile.holders.size() > most_holders) profile.holders.resize(most_holders);
  return profile;
}

// The block of the model that a record belongs to: "layers.3" for "layers.3.mlp.up"; empty: none.
std::string block_of(const Places& places, std::uint32_t record) {
  if (record >= places.of_record.size()) return "";
  const std::string& path = places.modules[places.stacks[places.of_record[record]].module];
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return path.substr(0, end);
    begin = end + 1;
  }
  return "";
}

// Writes lists, dicts, numbers and strings with pickle protocol 2.
class Pickle {
 public:
  Pickle() { out_ = "\x80\x02"; }
  void list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void text(std::string_view text) {
    out_ += 'X';
    little(text.size(), 4);
    out_ += text;
  }
  void integer(std::uint64_t value) {
    out_ += "\x8a\x09";  // a long of nine bytes; the ninth is 0, so that it is positive
    little(value, 8);
    out_ += '\0';
  }
  std::string end() { return out_ + "."; }

 private:
  void little(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  std::string out_;
};

}  // namespace

std::string_view name(Holds kind) {
  constexpr std::string_view names[] = {"parameters",  "gradients", "optimizer state",
                                        "activations", "temporary", "communication",
                                        "cached",      "program",   "context"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<MemoryProfile> memory_profiles(const job::Job& job, const simulate::Timeline& timeline,
                                           const catalog::Gpu& gpu,
                                           const std::vector<Places>& places) {
  static const Places nothing;
  std::vector<MemoryProfile> profiles;
  for (std::uint32_t c = 0; c < job.classes.size(); ++c)
    profiles.push_back(profile_of(job, timeline, c, gpu, c < places.size() ? places[c] : nothing));
  return profiles;
}

std::int64_t peak_with(const MemoryChange& change, const job::Job& job, std::size_t rank_class,
                       const catalog::Gpu& gpu, const Places& places) {
  const job::RankClass& one = job.classes[rank_class];
  std::vector<Piece> pieces = pieces_of(one.recording);
  if (pieces.empty()) return 0;
  const Classifier kind_of(job, one, places);
  std::map<std::int64_t, bool> of_parameters;  // sizes
  for (Piece& piece : pieces)
    if ((piece.kind = kind_of(piece)) == Holds::parameters) of_parameters[piece.bytes] = true;

  // What each block of each pass keeps, in the order of allocation.
  std::vector<std::int64_t> after(pieces.size());
  std::map<std::pair<std::string, std::uint32_t>, std::vector<std::size_t>> blocks;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const Piece& piece = pieces[p];
    const bool scales = piece.kind == Holds::activations ||
                        (piece.kind == Holds::temporary && of_parameters.count(piece.bytes) == 0 &&
                         !one.step_begin.empty() && piece.allocated >= one.step_begin.front());
    after[p] = scales ? static_cast<std::int64_t>(static_cast<double>(piece.bytes) * change.batch)
                      : piece.bytes;
    if (!change.recompute || piece.kind != Holds::activations) continue;
    const auto pass = static_cast<std::uint32_t>(
        std::upper_bound(one.step_begin.begin(), one.step_begin.end(), piece.allocated) -
        one.step_begin.begin());
    if (std::string block = block_of(places, piece.allocated); !block.empty())
      blocks[{std::move(block), pass}].push_back(p);
  }
  if (change.recompute && blocks.empty()) return 0;
  std::int64_t recomputed = 0;  // the activations of one block exist while it is computed again
  for (const auto& [block, kept] : blocks) {
    std::int64_t dropped = 0;
    for (std::size_t i = 0; i + 1 < kept.size(); ++i) dropped += std::exchange(after[kept[i]], 0);
    recomputed = std::max(recomputed, dropped);
  }

  std::vector<std::pair<std::uint32_t, std::int64_t>> events;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    events.emplace_back(pieces[p].allocated, after[p]);
    if (pieces[p].released != never) events.emplace_back(pieces[p].released, -after[p]);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::int64_t live = 0, peak = 0;
  for (const auto& [record, bytes] : events) peak = std::max(peak, live += bytes);

  // What PyTorch reserves beyond what it hands out is taken in proportion; context and NCCL stay.
  const MemoryProfile now =
      profile_of(job, {}, static_cast<std::uint32_t>(rank_class), gpu, places);
  Amounts parts = now.peak.bytes;
  const std::int64_t fixed = of(parts, Holds::context), cached = of(parts, Holds::cached);
  const std::int64_t handed_out = total(parts) - fixed - cached;
  std::int64_t nccl = handed_out;
  for (const Piece& piece : pieces)
    if (piece.allocated <= now.peak_record && piece.released > now.peak_record) nccl -= piece.bytes;
  const double reserve =
      handed_out > nccl ? static_cast<double>(cached) / static_cast<double>(handed_out - nccl) : 0;
  return fixed + std::max<std::int64_t>(0, nccl) +
         static_cast<std::int64_t>(static_cast<double>(peak + recomputed) * (1 + reserve));
}

Result<std::string> memory_snapshot(const job::RankClass& rank_class, const Places& places) {
  const std::vector<Piece> pieces = pieces_of(rank_class.recording);
  if (pieces.empty())
    return Error{
        "the run has no allocations of PyTorch's allocator: record it with `maya run --stacks`"};
  struct Event {
    std::uint32_t record;
    const Piece* piece;
    bool release;
  };
  std::vector<Event> events;
  for (const Piece& piece : pieces) {
    events.push_back({piece.allocated, &piece, false});
    if (piece.released != never) events.push_back({piece.released, &piece, true});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.record < b.record; });
  Pickle out;
  out.dict();
  out.text("segments"), out.list(), out.end_list();
  out.text("device_traces"), out.list(), out.list();
  for (const Event& event : events) {
    out.dict();
    out.text("action"), out.text(event.release ? "free_completed" : "alloc");
    out.text("addr"), out.integer(event.piece->address);
    out.text("size"), out.integer(static_cast<std::uint64_t>(event.piece->bytes));
    out.text("stream"), out.integer(event.piece->pool);
    out.text("time_us"), out.integer(event.record);
    out.text("frames"), out.list();
    const std::uint32_t record = event.piece->allocated;
    if (!event.release && record < places.of_record.size())
      for (const std::uint32_t at : places.stacks[places.of_record[record]].frames) {
        const Frame& frame = places.frames[at];
        out.dict();
        out.text("filename"), out.text(frame.file);
        out.text("line"), out.integer(static_cast<std::uint64_t>(std::max(0, frame.line)));
        out.text("name"), out.text(frame.function);
        out.end_dict();
      }
    out.end_list();
    out.end_dict();
  }
  out.end_list(), out.end_list();
  out.end_dict();
  return out.end();
}

}  // namespace maya::report
