// The lanes of a class while it is compiled: the streams of its devices, and chains of graph nodes
// that run in parallel with them. Keeps the order that CUDA defines: within a stream, by events
// (tickets), and between the legacy default stream of a device and its blocking streams.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "maya/trace.h"
#include "simulate/program.h"

namespace maya::simulate {

class Lanes {
 public:
  explicit Lanes(Program& program) : program_(program) {}

  void create_stream(const trace::Record& r);
  std::uint32_t of_stream(std::uint16_t id, std::uint8_t flags);
  // The lane for a stream operation of the current instruction. Adds the waits that order it with
  // the legacy default stream.
  std::uint32_t enter(std::uint16_t id, std::uint8_t flags);
  // The lane for chain n (n ≥ 1) of graphs that are launched on `lane`.
  std::uint32_t chain(std::uint32_t lane, std::uint32_t n);

  std::uint32_t new_ticket();
  // The ticket that is reached when everything issued to the lane so far is complete; none if
  // nothing was issued.
  std::uint32_t tail(std::uint32_t lane);

  void push(std::uint32_t lane, Item item);
  void record(std::uint32_t lane, std::uint32_t ticket);
  void wait_on(std::uint32_t lane, std::uint32_t ticket);
  // Adds work of the current instruction. It takes a place in the lane's launch queue.
  void submit(std::uint32_t lane, Item item);
  std::uint32_t take_place(std::uint32_t lane) { return lanes_[lane].submissions++; }
  // Adds a lane that also gets items of the current instruction.
  void also(std::uint32_t lane);

  void host_waits(std::uint32_t ticket);
  void host_waits_for_blocking_streams_of(std::uint32_t lane);
  // `device` is the number of the recording plus one; 0: all devices.
  void host_waits_for_device(std::uint32_t device);

  // To be called when everything that was issued is complete: discards it.
  void forget();

  // Adds tickets for everything that was issued since the last call and returns their number.
  std::uint32_t close_step(std::uint32_t boundary);

  std::uint32_t current() const {
    return static_cast<std::uint32_t>(program_.instructions.size() - 1);
  }
  Instruction& instruction() { return program_.instructions.back(); }

 private:
  struct Lane {
    std::uint32_t tail{none};  // the ticket after the lane's last item, if there is one
    std::uint32_t submissions{};
    std::uint16_t device{};
    bool blocking{};                    // synchronizes with the legacy default stream
    bool before_legacy{};               // has items that the legacy stream has not waited for
    std::uint32_t seen_legacy{};        // the legacy epoch that it has waited for
    bool in_step{};                     // has items since the last boundary
    std::uint32_t synced_by{none};      // the thread that waited for the tail
    std::vector<std::uint32_t> chains;  // lanes of chains 1… of graphs launched here
  };
  struct Stream {
    std::uint32_t lane{none};
    std::int32_t priority{};
    bool non_blocking{}, legacy{};
    std::uint32_t device{none};  // as recorded; none: the first of the process
  };
  struct Device {
    std::uint32_t legacy_lane{none}, legacy_epoch{};
    std::vector<std::uint32_t> blocking;  // lanes
  };

  Stream& stream(std::uint16_t id);
  std::uint32_t new_lane(std::uint16_t stream, std::uint16_t device, std::int32_t priority,
                         bool blocking);
  std::uint16_t device_of(std::uint32_t recorded);

  Program& program_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> in_step_;  // lanes with items since the last boundary
  std::vector<Stream> streams_;
  std::vector<Device> devices_{1};
  std::unordered_map<std::uint32_t, std::uint16_t> numbers_;  // recorded device → index
};

}  // namespace maya::simulate
