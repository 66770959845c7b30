// PTX of cubins that a ptxas made during this run. XLA and others compile PTX in a child process
// and load the cubin, keeping no text: the child leaves it in the run's directory under the cubin's
// hash, and the process that loads the cubin finds it there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace maya::decode {

void keep_assembled(const std::string& run_directory, std::string_view cubin, std::string_view ptx);

// Null when no ptxas of this run made the cubin.
std::shared_ptr<const std::string> find_assembled(const std::string& run_directory,
                                                  std::string_view cubin);

}  // namespace maya::decode
