// Files of other people: read with a limit, written whole or not at all.
#pragma once

#include <cstddef>
#include <string>

#include "maya/result.h"

namespace maya::base {

// The bytes of a regular file. A FIFO, a device or a file above `most` bytes is an error, so that
// a name somebody else chose cannot make the program wait or fill its memory.
Result<std::string> read_file(const std::string& path, std::size_t most);

// Replaces the file atomically: a reader sees the old or the new bytes, and a full disk leaves the
// old ones. A symbolic link is replaced, not followed. As private as the directory it is in.
Status write_file(const std::string& path, const std::string& bytes);

}  // namespace maya::base
