#include "session/device_load.h"

#include <signal.h>

#include "session/state.h"
#include "session/virtual_time.h"

namespace maya::session {
namespace {

std::int32_t in_job(int index) {
  const Settings& settings = state().settings;
  return settings.node * settings.cluster.gpus_per_node + index;
}

}  // namespace

clock::Load device_load(int index) {
  if (time_domain == nullptr || index < 0) return {};
  return time_domain->load(static_cast<std::uint32_t>(in_job(index))).at(thread_now());
}

DeviceEnergy device_energy(int index) {
  if (time_domain == nullptr || index < 0) return {};
  const auto& load = time_domain->load(static_cast<std::uint32_t>(in_job(index)));
  return {static_cast<double>(thread_now()) * 1e-9, static_cast<double>(load.power_ns()) * 1e-9};
}

std::vector<DeviceUser> device_users(int index) {
  std::vector<DeviceUser> users;
  if (time_domain == nullptr || index < 0) return users;
  for (std::uint32_t i = 0; i < time_domain->members(); ++i) {
    const clock::Member& member = time_domain->member(i);
    const std::int32_t process = member.process.load();
    const std::uint64_t bytes = member.used_bytes.load();
    if (member.device.load() == in_job(index) && bytes > 0 && kill(process, 0) == 0)
      users.push_back({process, bytes});
  }
  return users;
}

}  // namespace maya::session
