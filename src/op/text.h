// An op as one line of text: "gemm m=4096 n=4096 k=4096 a=bf16 …", and back.
#pragma once

#include <string>
#include <string_view>

#include "maya/op.h"
#include "maya/result.h"

namespace maya {

// Fields that differ from a default-constructed op of the kind; `all` writes every field.
std::string to_text(const Work& work, bool all = false);

// The inverse. Fields not named keep their defaults. The error names the bad word and lists what
// the kind knows.
Result<Work> parse_work(std::string_view text);

// Sets one field by name: parse_work's step, also used for a CSV cell or a command-line option.
Status set_field(Work& work, std::string_view key, std::string_view value);

}  // namespace maya
