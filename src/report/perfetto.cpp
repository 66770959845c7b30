// Perfetto's trace format (protos/perfetto/trace), written with protozero: one packet sequence with
// interned names. Ranks are processes, and streams are tracks of these processes.
#include <protozero/pbf_writer.hpp>

#include "maya/report.h"
#include "report/scene.h"

namespace maya::report {
namespace {

using protozero::pbf_writer;

constexpr std::uint32_t sequence = 1;
enum : std::uint32_t { state_cleared = 1, needs_state = 2 };
enum : std::int32_t { slice_begin = 1, slice_end = 2, counter = 4 };
constexpr std::int32_t explicit_order = 3, bytes_unit = 3;

namespace field {
enum Packet : std::uint32_t {
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  track_descriptor = 60
};
enum Descriptor : std::uint32_t {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter_descriptor = 8,
  child_ordering = 11,
  sibling_order_rank = 12
};
enum Event : std::uint32_t {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  counter_value = 30,
  flow_ids = 47,
  terminating_flow_ids = 48
};
}  // namespace field

// In Perfetto, process and thread 0 are the idle task.
std::int32_t pid_of(std::int32_t rank) { return rank + 1; }
std::uint64_t process_uuid(std::int32_t rank) { return 1'000'000'000ULL + rank; }
std::uint64_t track_uuid(std::uint32_t track) { return 1 + track; }

class Writer {
 public:
  explicit Writer(const Scene& scene) : scene_(scene), trace_(bytes_) {}

  std::string write() {
    strings();
    descriptors();
    for (const Slice& slice : scene_.slices) write_slice(slice);
    for (const Sample& sample : scene_.samples) {
      packet(sample.time_ns, [&](pbf_writer& event) {
        event.add_enum(field::type, counter);
        event.add_uint64(field::track_uuid, track_uuid(sample.track));
        event.add_int64(field::counter_value, sample.value);
      });
    }
    return std::move(bytes_);
  }

 private:
  // All texts are interned once, in the first packet, as names, categories and annotation values.
  void strings() {
    pbf_writer packet(trace_, 1);
    packet.add_uint32(field::sequence_id, sequence);
    packet.add_uint32(field::sequence_flags, state_cleared);
    pbf_writer interned(packet, field::interned_data);
    auto add = [&](std::uint32_t where, std::uint64_t iid, const std::string& text) {
      pbf_writer entry(interned, where);
      entry.add_uint64(1, iid);
      entry.add_string(2, text);
    };
    for (std::size_t i = 1; i < scene_.texts.size(); ++i) {
      add(1, i, scene_.texts[i]);   // event_categories
      add(2, i, scene_.texts[i]);   // event_names
      add(29, i, scene_.texts[i]);  // debug_annotation_string_values
    }
    add(3, 1, "op");  // debug_annotation_names
  }

  void descriptors() {
    for (std::size_t i = 0; i < scene_.ranks.size(); ++i) {
      pbf_writer packet(trace_, 1);
      packet.add_uint32(field::sequence_id, sequence);
      pbf_writer descriptor(packet, field::track_descriptor);
      descriptor.add_uint64(field::uuid, process_uuid(scene_.ranks[i]));
      descriptor.add_enum(field::child_ordering, explicit_order);
      pbf_writer process(descriptor, field::process);
      process.add_int32(1, pid_of(scene_.ranks[i]));
      process.add_string(6, scene_.rank_names[i]);
    }
    for (std::uint32_t i = 0; i < scene_.tracks.size(); ++i) {
      const Track& track = scene_.tracks[i];
      pbf_writer packet(trace_, 1);
      packet.add_uint32(field::sequence_id, sequence);
      pbf_writer descriptor(packet, field::track_descriptor);
      descriptor.add_uint64(field::uuid, track_uuid(i));
      descriptor.add_string(field::name, track.name);
      descriptor.add_int32(field::sibling_order_rank, track.order);
      if (track.kind == Track::Kind::host) {
        pbf_writer thread(descriptor, field::thread);
        thread.add_int32(1, pid_of(track.rank));
        thread.add_int64(2, pid_of(track.rank) * 1000 + track.order);
        thread.add_string(5, track.name);
      } else if (track.rank >= 0) {
        descriptor.add_uint64(field::parent_uuid, process_uuid(track.rank));
      }
      if (track.kind == Track::Kind::memory) {
        pbf_writer memory(descriptor, field::counter_descriptor);
        memory.add_enum(3, bytes_unit);
      }
    }
  }

  template <class Fill>
  void packet(std::int64_t time, Fill&& fill) {
    pbf_writer packet(trace_, 1);
    packet.add_uint64(field::timestamp, static_cast<std::uint64_t>(time));
    packet.add_uint32(field::sequence_id, sequence);
    packet.add_uint32(field::sequence_flags, needs_state);
    pbf_writer event(packet, field::track_event);
    fill(event);
  }

  void write_slice(const Slice& slice) {
    packet(slice.start_ns, [&](pbf_writer& event) {
      if (slice.category) event.add_uint64(field::category_iids, slice.category);
      if (slice.detail) {
        pbf_writer annotation(event, field::debug_annotations);
        annotation.add_uint64(1, 1);
        annotation.add_uint64(17, slice.detail);
      }
      event.add_enum(field::type, slice_begin);
      if (slice.name) event.add_uint64(field::name_iid, slice.name);
      event.add_uint64(field::track_uuid, track_uuid(slice.track));
      if (slice.launch_out) event.add_fixed64(field::flow_ids, slice.launch_out);
      if (slice.joined) event.add_fixed64(field::flow_ids, slice.joined);
      if (slice.launch_in) event.add_fixed64(field::terminating_flow_ids, slice.launch_in);
    });
    packet(slice.end_ns, [&](pbf_writer& event) {
      event.add_enum(field::type, slice_end);
      event.add_uint64(field::track_uuid, track_uuid(slice.track));
    });
  }

  const Scene& scene_;
  std::string bytes_;
  pbf_writer trace_;
};

}  // namespace

std::string perfetto_trace(const job::Job& job, const simulate::Timeline& timeline) {
  const Scene scene = make_scene(job, timeline);
  return Writer(scene).write();
}

}  // namespace maya::report
