#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  return {
      "s 1 7f00\t12:forward:/home/a/train.py\t40:<module>:/home/a/train.py\n"
      "m 7f00 model.layers.0\nc 7f00 Linear\np 0 0 1\nb 2 1 1\np 1 3 2\nb 3 0 0\np 2 5 3\n",
      "s 1 0\t1:f:<string>\ns 2 ffffffffffffffff\t\t\t\nb 3 3 1\np 0 18446744073709551615 2\n",
      "p 0 0 0\nm 1 \nc zz x\n"};
}

}  // namespace maya::fuzz
