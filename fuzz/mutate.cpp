// Runs the fuzz targets without a fuzzer, on inputs that are made from seeds by a fixed sequence of
// small mutations. Every build and every machine tries the same inputs: `make fuzz` searches for
// new failures, this is the regression test.
//
//   NAME_mutations [COUNT]          try the seeds and COUNT damaged ones
//   NAME_mutations --write DIR      write the seeds there, as a first corpus for libFuzzer
#include "mutate.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace maya::fuzz {

void add_files(std::vector<std::string>& seeds, const std::string& folder,
               const std::string& extension, std::uintmax_t bytes) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(MAYA_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == extension && entry.file_size() < bytes)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
}

}  // namespace maya::fuzz

namespace {

void damage(std::string& bytes, std::mt19937& random, const std::vector<std::string>& seeds) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  static constexpr std::uint64_t extremes[] = {
      0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull >> 1, ~0ull};
  switch (below(8)) {
    case 0:  // a bit
      if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
      break;
    case 1:  // a byte
      if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(random());
      break;
    case 2: {  // a number of 1, 2, 4 or 8 bytes
      std::size_t width = std::size_t{1} << below(4);
      if (bytes.size() < width) break;
      std::memcpy(bytes.data() + below(bytes.size() - width + 1), &extremes[below(11)], width);
      break;
    }
    case 3:  // truncate
      bytes.resize(below(bytes.size() + 1));
      break;
    case 4: {  // remove a part
      std::size_t at = below(bytes.size() + 1);
      bytes.erase(at, below(64));
      break;
    }
    case 5: {  // duplicate a part
      std::size_t at = below(bytes.size() + 1), length = below(64);
      std::string part = bytes.substr(at, length);
      bytes.insert(below(bytes.size() + 1), part);
      break;
    }
    case 6: {  // insert a part of another seed
      const std::string& other = seeds[below(seeds.size())];
      std::size_t at = below(other.size() + 1);
      std::size_t to = below(bytes.size() + 1);
      bytes.replace(to, below(bytes.size() - to + 1), other.substr(at, below(128)));
      break;
    }
    default:  // move a multiple of 16 bytes, which are units of a recording
      if (bytes.size() > 48) {
        std::size_t units = bytes.size() / 16 - 1;
        std::string unit = bytes.substr(16 * below(units), 16);
        bytes.replace(16 * below(units), 16, unit);
      }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> seeds = maya::fuzz::seeds();
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) {
    for (std::size_t i = 0; i < seeds.size(); ++i)
      std::ofstream(std::string(argv[2]) + "/seed-" + std::to_string(i), std::ios::binary)
          << seeds[i];
    return 0;
  }
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 10000;
  auto feed = [](const std::string& bytes) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  for (const std::string& seed : seeds) feed(seed);
  std::error_code none;
  std::size_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MAYA_CORPUS, none)) {
    std::ifstream file(entry.path(), std::ios::binary);
    feed({std::istreambuf_iterator<char>(file), {}});
    ++kept;
  }
  for (unsigned i = 0; i < count; ++i) {
    std::mt19937 random(i);
    std::string bytes = seeds[random() % seeds.size()];
    for (unsigned n = 1 + random() % 6; n > 0; --n) damage(bytes, random, seeds);
    feed(bytes);
  }
  std::printf("%zu seeds, %zu kept inputs, %u damaged inputs\n", seeds.size(), kept, count);
  return 0;
}
