#include "maya/report.h"
#include "mutate.h"

namespace maya::fuzz {

std::vector<std::string> seeds() {
  report::Prediction full;
  full.world_size = 8, full.gpus = 8, full.cluster = "dgx-h100:1", full.gpu = "h100-sxm";
  full.command = "torchrun train.py";
  full.step = report::StepTime{100, 90, 110, 5, "optimizer"};
  full.notes = {"a note"};
  full.memory.push_back({0, 1 << 30, 2 << 30, 1 << 20, std::int64_t{80} << 30});
  full.settings = {{"scale.gemm", "0.5"}};
  report::Prediction empty;
  return {report::to_json(full), report::to_json(empty), "{\"version\": 1}", "[[[[[[[["};
}

}  // namespace maya::fuzz
