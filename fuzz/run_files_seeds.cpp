#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  const std::string run =
      std::string(1, '\0') +
      "version = 1\ncommand = [\"python\", \"train.py\"]\ncluster = \"dgx-h100\"\n"
      "started = 2026-11-18T08:00:00Z\nexit_code = 0\nstopped = true\n"
      "clock = \"virtual\"\nclock_notes = [\"a\", \"b\"]\n[recorded_on]\n"
      "speed = 0.8\nbenchmark_us = 12.5\n[ranks]\nstand_in = [0, 0, 1, 1]\n";
  return {run,
          "\1{\"loads\": [{\"output_tokens_per_second\": 100.5, \"a\": [1, 2]}], \"capacity\": "
          "{\"points\": [{\"output_tokens_per_second\": 1e300}]}}",
          "\1{\"loads\": [[[[[[]]]]], 1, null, \"\\u0000\"]}",
          "\0027\n8 9\n18446744073709551616\n"};
}

}  // namespace maya::fuzz
