// Detects where the training steps of a job begin and end.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "maya/collate.h"
#include "maya/job.h"
#include "maya/result.h"

namespace maya::collate {

// Fills step_begin of every class, and found_by, measured, warmup_steps and notes of the job. The
// methods are tried in this order: steps specified by the user; annotations of the framework;
// optimizer updates, which end a step; backward passes with more than a forward pass between them;
// the period of the op sequence. If all fail, the whole run after initialization is one step.
Status find_steps(job::Job& job, const Options& options);

// The steps of one rank, as a job with one class. There are none if the whole run counts as one
// step.
job::Job steps_of(trace::Recording recording);

}  // namespace maya::collate
