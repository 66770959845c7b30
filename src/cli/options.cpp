#include "cli/options.h"

#include "predict/settings.h"

namespace maya::cli {

void PredictOptions::add_to(CLI::App& verb) {
  verb.add_option("--cluster", cluster,
                  "Cluster, GPU or TOML file: dgx-h100:4, a100-80gb-sxm, mine.toml (default: the "
                  "cluster of the run)")
      ->type_name("SPEC");
  verb.add_option("--set", settings,
                  "What if: network.nic_gbps=200, host.speed=1.3, communication=0, scale.gemm=0.5, "
                  "tokens_per_step=N; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all();
  verb.add_option("--steps", steps,
                  "auto, the number of steps of the run, or the name of the NVTX range of a step")
      ->type_name("auto|N|RANGE");
  verb.add_option("--calibration", calibration, "File of `maya calibrate`")->type_name("FILE");
  verb.add_flag("--unfold", unfold,
                "Simulate every rank, not one rank of each group that does identical work");
}

Result<predict::Options> PredictOptions::parsed() const {
  predict::Options options;
  options.cluster = cluster;
  options.calibration = calibration;
  options.steps = steps;
  options.fold = !unfold;
  for (const std::string& text : settings) {
    auto setting = predict::split_setting(text);
    if (!setting) return setting.error();
    options.settings.push_back(*setting);
  }
  return options;
}

}  // namespace maya::cli
