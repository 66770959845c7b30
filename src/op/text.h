// Converts an op to one line of text ("gemm m=4096 n=4096 k=4096 a=bf16 …") and back.
#pragma once

#include <string>
#include <string_view>

#include "maya/op.h"
#include "maya/result.h"

namespace maya {

// Writes the fields that differ from a default-constructed op of the same kind, or with `all` every
// field.
std::string to_text(const Work& work, bool all = false);

// The inverse. Fields that are not named keep their defaults. The error names the wrong word and
// lists the fields of the kind.
Result<Work> parse_work(std::string_view text);

// Sets one field by name. Used by parse_work, for cells of CSV files and for command-line options.
Status set_field(Work& work, std::string_view key, std::string_view value);

}  // namespace maya
