// Ops as users name them ("linear", "rope", "adam") on top of the vocabulary of maya/op.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "maya/op.h"
#include "maya/result.h"

namespace maya::estimate {

using Keys = std::map<std::string, std::string, std::less<>>;  // lower case

struct Word {
  std::string_view names;  // "gemm matmul mm": the first is the name, the others stand for it
  std::string_view keys;   // as help shows them
  std::string_view meaning;
  std::string_view example;
  Result<Op> (*build)(std::string_view name, Keys& keys);  // takes out the keys it uses
};
const std::vector<Word>& vocabulary();

// `strict`: a key nobody took is an error (command line); else it is ignored (CSV columns).
Result<Op> build_op(std::string_view name, Keys keys, bool strict);

}  // namespace maya::estimate
