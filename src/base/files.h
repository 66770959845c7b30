// Reading files with a size limit, and writing files atomically.
#pragma once

#include <cstddef>
#include <string>

#include "maya/result.h"

namespace maya::base {

// The bytes of a regular file. A FIFO, a device or a file of more than `most` bytes is an error:
// the path may come from an untrusted file and must not make the program block or exhaust memory.
Result<std::string> read_file(const std::string& path, std::size_t most);

// Replaces the file atomically: a reader sees either the old or the new bytes, and if the disk is
// full the old bytes stay. A symbolic link is replaced, not followed. The permissions of the file
// are at most those of its directory.
Status write_file(const std::string& path, const std::string& bytes);

}  // namespace maya::base
