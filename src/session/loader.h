#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::session {

// The emulated libraries of one directory, asked by the name a program opens.
class EmulatedLibraries {
 public:
  explicit EmulatedLibraries(const std::string& directory);

  // The path to open instead of `wanted`, or null when it is none of ours. `wanted` may be a bare
  // name or a path, with fewer or more version numbers than ours: /opt/x/libcudart.so.12.8.90 is
  // libcudart.so.12. The pointer lives as long as this object.
  //
  // `needed`: what the program's libraries are linked with. We have more versions of a library than
  // a user installs, and a program may try one after the other (cuDNN's front end). Structures of
  // CUDA 12 and 13 differ in size, so a bare name of a version that nobody is linked with, where
  // another one is, leads to a name that does not exist.
  const char* find(std::string_view wanted, const std::vector<std::string>& needed = {}) const;
  // Whether one of ours might be meant.
  bool may_have(std::string_view wanted) const { return find(wanted) != nullptr; }

 private:
  struct Library {
    std::string name;
    std::string path;
    std::string absent;  // no file has this name
  };
  std::string directory_;
  std::vector<Library> libraries_;  // highest version first among equal stems
};

// Told of each library that the program opens, before it is opened; null: nobody asks.
extern void (*library_opens)(const char* name);

}  // namespace maya::session
