// nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits]
#pragma once

#include <string>
#include <string_view>

#include "machine.h"

namespace maya::nvidia_smi {

struct Format {
  bool header{true}, units{true};
};

Result<Format> parse_format(std::string_view text);
// An unknown field is an error in nvidia-smi's own words.
Result<std::string> query(const Machine& machine, std::string_view fields, const Format& format);

}  // namespace maya::nvidia_smi
