#include "report/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "op/text.h"
#include "report/format.h"
#include "report/memory.h"

namespace maya::report {
namespace {

class Texts {
 public:
  explicit Texts(std::vector<std::string>& texts) : texts_(texts) { texts_.assign(1, ""); }
  std::uint32_t operator()(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, added] = index_.emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return at->second;
  }

 private:
  std::vector<std::string>& texts_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

// The part of the scene that is the same for all ranks of a class.
struct ClassView {
  std::map<std::uint16_t, std::vector<const simulate::Span*>> streams;      // by start
  std::map<std::uint16_t, std::vector<const simulate::HostSpan*>> threads;  // by start
  std::vector<std::uint32_t> op_name, op_category, op_detail;
  std::vector<std::pair<std::int64_t, std::int64_t>> memory;  // (ns, bytes)
  std::unordered_map<std::uint32_t, const simulate::Span*> first_of_record;
};

std::vector<ClassView> view_classes(const job::Job& job, const simulate::Timeline& timeline,
                                    Texts& texts) {
  std::vector<ClassView> views(job.classes.size());
  for (const simulate::Span& span : timeline.spans) {
    if (span.rank_class >= views.size()) continue;
    ClassView& view = views[span.rank_class];
    view.streams[span.stream].push_back(&span);
    const simulate::Span*& first = view.first_of_record[span.record];
    if (first == nullptr || span.start_ns < first->start_ns) first = &span;
  }
  for (const simulate::HostSpan& span : timeline.host_spans)
    if (span.rank_class < views.size())
      views[span.rank_class].threads[span.thread].push_back(&span);

  auto by_start = [](const auto* a, const auto* b) {
    return std::tie(a->start_ns, a->end_ns, a->record) <
           std::tie(b->start_ns, b->end_ns, b->record);
  };
  for (std::size_t c = 0; c < views.size(); ++c) {
    ClassView& view = views[c];
    for (auto& [stream, spans] : view.streams)
      std::stable_sort(spans.begin(), spans.end(), by_start);
    for (auto& [thread, spans] : view.threads)
      std::stable_sort(spans.begin(), spans.end(), by_start);
    const trace::Recording& recording = job.classes[c].recording;
    for (const Op& op : recording.ops) {
      view.op_name.push_back(texts(slice_name(op)));
      view.op_category.push_back(texts(std::string(kind_name(op.work))));
      view.op_detail.push_back(texts(op.name + (op.name.empty() ? "" : "  ") + to_text(op.work)));
    }
    // An allocation happens at the end of its host call, or of the last call before it.
    std::vector<const simulate::HostSpan*> hosts;
    for (const auto& [thread, spans] : view.threads)
      hosts.insert(hosts.end(), spans.begin(), spans.end());
    std::stable_sort(hosts.begin(), hosts.end(),
                     [](const auto* a, const auto* b) { return a->record < b->record; });
    std::vector<std::pair<std::uint32_t, std::int64_t>> changes;
    memory_use(recording, &changes);
    std::size_t next = 0;
    std::int64_t now = 0;
    for (const auto& [record, bytes] : changes) {
      while (next < hosts.size() && hosts[next]->record <= record)
        now = std::max(now, hosts[next++]->end_ns);
      if (!view.memory.empty() && view.memory.back().first == now)
        view.memory.back().second = bytes;
      else
        view.memory.emplace_back(now, bytes);
    }
  }
  return views;
}

class Builder {
 public:
  Builder(const job::Job& job, const simulate::Timeline& timeline, const SceneOptions& options)
      : job_(job), timeline_(timeline), options_(options), texts_(scene_.texts) {
    for (std::size_t index = 0; index < job.communicators.size(); ++index) {
      const job::Communicator& communicator = job.communicators[index];
      for (std::size_t i = 0; i < communicator.ranks.size(); ++i)
        if (i < communicator.slots.size())
          communicator_of_[{communicator.ranks[i], communicator.slots[i]}] = index;
    }
  }

  Scene build() {
    const std::vector<ClassView> views = view_classes(job_, timeline_, texts_);
    choose_ranks(views);
    overview();
    for (std::int32_t rank : scene_.ranks) {
      const std::uint32_t c = job_.class_of_rank[rank];
      if (options_.hosts) hosts(rank, views[c], job_.classes[c].recording);
      streams(rank, views[c], job_.classes[c].recording);
      memory(rank, views[c]);
    }
    return std::move(scene_);
  }

 private:
  // In a large job some classes have no spans (simulate::Options::most_spans).
  bool shown(const std::vector<ClassView>& views, std::uint32_t c) const {
    return timeline_.spans.empty() || !views[c].streams.empty();
  }

  void choose_ranks(const std::vector<ClassView>& views) {
    const bool all = job_.world_size <= options_.most_ranks &&
                     job_.class_of_rank.size() == static_cast<std::size_t>(job_.world_size);
    if (all) {
      for (std::int32_t rank = 0; rank < job_.world_size; ++rank)
        if (shown(views, job_.class_of_rank[rank])) {
          scene_.ranks.push_back(rank);
          scene_.rank_names.push_back(fmt::format("rank {}", rank));
        }
      return;
    }
    std::vector<std::pair<std::int32_t, std::string>> named;
    for (std::uint32_t c = 0; c < job_.classes.size(); ++c) {
      const job::RankClass& one = job_.classes[c];
      if (shown(views, c))
        named.emplace_back(one.representative,
                           (one.ranks.size() == 1 ? "rank " : "ranks ") + rank_list(one.ranks));
    }
    std::sort(named.begin(), named.end());
    for (auto& [rank, name] : named)
      scene_.ranks.push_back(rank), scene_.rank_names.push_back(name);
  }

  std::uint32_t add_track(Track::Kind kind, std::int32_t rank, std::int32_t order,
                          std::string name) {
    scene_.tracks.push_back({kind, rank, order, std::move(name)});
    return static_cast<std::uint32_t>(scene_.tracks.size() - 1);
  }

  void overview() {
    const std::uint32_t steps = add_track(Track::Kind::overview, -1, 0, "steps");
    std::int64_t last = 0;
    for (std::size_t k = 0; k < timeline_.steps.size(); ++k) {
      const simulate::Step& step = timeline_.steps[k];
      Slice slice;
      slice.track = steps;
      slice.name = texts_(fmt::format("step {}{}", k, step.measured ? "" : " (not measured)"));
      slice.category = texts_("step");
      slice.start_ns = std::max(step.start_ns, last);  // steps of a pipeline overlap a little
      slice.end_ns = last = std::max(step.end_ns, slice.start_ns);
      scene_.slices.push_back(slice);
    }
    const std::uint32_t path = add_track(Track::Kind::overview, -1, 1, "critical path");
    last = 0;
    using What = simulate::CriticalLink::What;
    for (const simulate::CriticalLink& link : timeline_.critical_path) {
      Slice slice;
      slice.track = path;
      const bool on_device = link.what != What::host && link.what != What::wait;
      if (on_device && link.rank_class < job_.classes.size() &&
          link.op < job_.classes[link.rank_class].recording.ops.size())
        slice.name = texts_(slice_name(job_.classes[link.rank_class].recording.ops[link.op]));
      else
        slice.name = texts_(link.what == What::host ? "host" : "wait");
      slice.category = texts_("critical path");
      slice.start_ns = std::max(link.start_ns, last);
      slice.end_ns = last = std::max(link.end_ns, slice.start_ns);
      scene_.slices.push_back(slice);
    }
  }

  std::uint64_t launch_id(std::int32_t rank, std::uint32_t record) const {
    return (static_cast<std::uint64_t>(rank + 1) << 32 | record) + 1;
  }

  void hosts(std::int32_t rank, const ClassView& view, const trace::Recording& recording) {
    for (const auto& [thread, spans] : view.threads) {
      const std::uint32_t track =
          add_track(Track::Kind::host, rank, thread, fmt::format("host thread {}", thread));
      std::int64_t last = 0;
      for (const simulate::HostSpan* span : spans) {
        const trace::Kind kind = span->record < recording.records.size()
                                     ? recording.records[span->record].kind
                                     : trace::Kind::none;
        Slice slice;
        slice.track = track;
        slice.name = texts_(
            std::string(kind == trace::Kind::host_gap ? "before a wait" : trace::name(kind)) +
            (span->waiting ? " (waiting)" : ""));
        slice.category = texts_(span->waiting ? "host wait" : "host");
        slice.start_ns = std::max(span->start_ns, last);
        slice.end_ns = last = std::max(span->end_ns, slice.start_ns);
        if (!span->waiting && view.first_of_record.count(span->record) > 0)
          slice.launch_out = launch_id(rank, span->record);
        scene_.slices.push_back(slice);
      }
    }
  }

  void streams(std::int32_t rank, const ClassView& view, const trace::Recording& recording) {
    for (const auto& [stream, spans] : view.streams) {
      const std::vector<std::uint32_t> lane_of = lanes(spans);
      const std::uint32_t count = 1 + *std::max_element(lane_of.begin(), lane_of.end());
      const bool communicates = std::any_of(spans.begin(), spans.end(),
                                            [](const auto* span) { return span->collective >= 0; });
      for (std::uint32_t lane = 0; lane < count; ++lane) {
        std::string name = fmt::format("stream {}", stream);
        if (communicates) name += " communication";
        if (lane > 0) name += fmt::format(" ({})", lane + 1);
        const std::uint32_t track =
            add_track(Track::Kind::stream, rank, 1000 + 16 * stream + static_cast<int>(lane), name);
        for (std::size_t i = 0; i < spans.size(); ++i)
          if (lane_of[i] == lane) device_slice(rank, track, *spans[i], view, recording);
      }
    }
  }

  void device_slice(std::int32_t rank, std::uint32_t track, const simulate::Span& span,
                    const ClassView& view, const trace::Recording& recording) {
    Slice slice;
    slice.track = track;
    if (span.op < recording.ops.size()) {
      slice.name = view.op_name[span.op];
      slice.category = view.op_category[span.op];
      slice.detail = view.op_detail[span.op];
    } else {
      slice.name = texts_("host function");
    }
    slice.start_ns = span.start_ns;
    slice.end_ns = std::max(span.end_ns, span.start_ns);
    if (options_.hosts && view.first_of_record.at(span.record) == &span)
      slice.launch_in = launch_id(rank, span.record);
    if (span.collective >= 0) {
      // Folded communicators share one number; only members of the same communicator are joined.
      std::uint64_t communicator = 0;
      if (auto found = communicator_of_.find({rank, span.communicator});
          found != communicator_of_.end())
        communicator = found->second + 1;
      slice.joined = std::uint64_t{1} << 63 | communicator << 40 |
                     (static_cast<std::uint64_t>(span.collective) & 0xff'ffff'ffff);
    }
    scene_.slices.push_back(slice);
  }

  void memory(std::int32_t rank, const ClassView& view) {
    if (view.memory.empty()) return;
    const std::uint32_t track = add_track(Track::Kind::memory, rank, 100'000'000, "device memory");
    for (const auto& [time, bytes] : view.memory) scene_.samples.push_back({track, time, bytes});
  }

  const job::Job& job_;
  const simulate::Timeline& timeline_;
  SceneOptions options_;
  Scene scene_;
  Texts texts_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::uint64_t> communicator_of_;  // (rank, slot)
};

}  // namespace

std::vector<std::uint32_t> lanes(const std::vector<const simulate::Span*>& spans) {
  std::vector<std::uint32_t> result(spans.size());
  std::vector<std::int64_t> free_at;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    std::size_t lane = 0;
    while (lane < free_at.size() && free_at[lane] > spans[i]->start_ns) ++lane;
    if (lane == free_at.size()) free_at.push_back(0);
    free_at[lane] = spans[i]->end_ns;
    result[i] = static_cast<std::uint32_t>(lane);
  }
  return result;
}

std::string slice_name(const Op& op) {
  const Work& work = op.work;
  if (const auto* gemm = std::get_if<Gemm>(&work))
    return gemm->batch > 1
               ? fmt::format("gemm {}x{}x{}x{} {}", gemm->batch, gemm->m, gemm->n, gemm->k,
                             name(gemm->compute))
               : fmt::format("gemm {}x{}x{} {}", gemm->m, gemm->n, gemm->k, name(gemm->compute));
  if (const auto* collective = std::get_if<Collective>(&work))
    return fmt::format("{} {}", enum_name(collective->kind),
                       human_bytes(static_cast<double>(collective->bytes)));
  if (const auto* message = std::get_if<PointToPoint>(&work))
    return fmt::format("{} {}", message->send ? "send" : "receive",
                       human_bytes(static_cast<double>(message->bytes)));
  if (const auto* copy = std::get_if<Copy>(&work))
    return fmt::format("copy {} {}", enum_name(copy->direction),
                       human_bytes(static_cast<double>(copy->bytes)));
  if (std::holds_alternative<OtherKernel>(work) || std::holds_alternative<TritonKernel>(work))
    return op.name.substr(0, 120);
  return std::string(kind_name(work));
}

Scene make_scene(const job::Job& job, const simulate::Timeline& timeline,
                 const SceneOptions& options) {
  return Builder(job, timeline, options).build();
}

}  // namespace maya::report
