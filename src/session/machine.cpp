#include "session/machine.h"

#include "session/state.h"

namespace maya::session {

const std::vector<int>& visible_devices() { return state().settings.devices; }

const catalog::Cluster& cluster() { return state().settings.cluster; }

const std::string& machine_fault() { return state().settings.fault; }

JobPlace place_in_job() {
  const Settings& s = state().settings;
  return {s.rank, s.world_size, s.node};
}

}  // namespace maya::session
