// Random jobs as scripts: a list of actions that any number of ranks execute in order. A script
// stays valid if any action is removed, which makes it easy to reduce a failing one. No job can
// deadlock, because every wait is for something earlier in the script.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "maya/catalog.h"
#include "maya/trace.h"

namespace maya::testing {

struct Action {
  enum class What : std::uint8_t {
    kernel,
    copy,
    fill,
    host_function,
    record_event,
    wait_event,
    sync_event,
    sync_stream,
    sync_device,
    release,
    collective,
    message,
    ring,
    grouped_collectives,
    exchange,
    graph,
    mark
  } what{};
  std::uint32_t ranks{};  // bit set of the ranks that do it (collectives: the whole group)
  std::uint8_t thread{}, stream{}, group{}, choice{};
  bool resumed{}, blocking{};
  std::uint16_t size{}, host{};
  std::uint8_t event{}, from{}, to{};
};

struct Script {
  int world{1};
  bool spmd{};  // all ranks do identical work, so the job can be folded
  std::vector<Action> actions;
};

Script random_script(std::mt19937& random, int length, bool spmd);
std::vector<trace::Recording> recordings_of(const Script& script);
// The record index of each rank at the middle of the script, which is a step boundary.
std::vector<std::uint32_t> middles_of(const Script& script);
catalog::Cluster random_cluster(std::mt19937& random, int world);
std::string text(const Script& script);

}  // namespace maya::testing
