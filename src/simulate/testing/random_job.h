// Random jobs as scripts: a list of actions that any number of ranks carry out in order. Leaving
// out any action leaves a valid job, which is what makes shrinking simple. No job can deadlock:
// whatever waits, waits for something earlier in the script.
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
  std::uint32_t ranks{};  // bit set: who does it (collectives: everybody of the group)
  std::uint8_t thread{}, stream{}, group{}, choice{};
  bool resumed{}, blocking{};
  std::uint16_t size{}, host{};
  std::uint8_t event{}, from{}, to{};
};

struct Script {
  int world{1};
  bool spmd{};  // all ranks do the same: the job folds
  std::vector<Action> actions;
};

Script random_script(std::mt19937& random, int length, bool spmd);
std::vector<trace::Recording> recordings_of(const Script& script);
// Record index of each rank at the middle of the script: a step boundary.
std::vector<std::uint32_t> middles_of(const Script& script);
catalog::Cluster random_cluster(std::mt19937& random, int world);
std::string text(const Script& script);

}  // namespace maya::testing
