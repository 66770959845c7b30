#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> result{
      "maya-calibration 1\ngpu h100-sxm\nsource here\n"
      "op 103775 99712 108200 704 gemm m=4096 n=4096 k=4096\nscale gemm.tensor 1.1 0.9 1.2 12\n",
      "maya-model 1\n[f]\na 1\nb 1\n[f ampere]\na 2\n[f ampere-8.0]\nsource s\na 3\n"};
  add_files(result, "catalog/models", ".model", 8000);
  return result;
}

}  // namespace maya::fuzz
