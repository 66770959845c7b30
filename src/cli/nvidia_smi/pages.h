// What nvidia-smi prints for people: the table, the list, the topology.
#pragma once

#include <string>

#include "machine.h"

namespace maya::nvidia_smi {

std::string table(const Machine& machine);     // nvidia-smi
std::string list(const Machine& machine);      // nvidia-smi -L
std::string topology(const Machine& machine);  // nvidia-smi topo -m

}  // namespace maya::nvidia_smi
