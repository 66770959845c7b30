// The stages of a pipeline, and which recorded rank stands for each.
#pragma once

#include <vector>

#include "maya/job.h"
#include "maya/report.h"

namespace maya::report {

// In the order of the pipeline; empty where ranks are no stages of one pipeline.
std::vector<PipelineStage> pipeline_stages(const job::Job& job);

}  // namespace maya::report
