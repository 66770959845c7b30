// The stages of a pipeline, and the recorded rank whose recording each of them uses.
#pragma once

#include <vector>

#include "maya/job.h"
#include "maya/report.h"

namespace maya::report {

// In the order of the pipeline; empty if the ranks are not stages of one pipeline.
std::vector<PipelineStage> pipeline_stages(const job::Job& job);

}  // namespace maya::report
