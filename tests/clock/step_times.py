"""Runs a training script as it is and prints how long its steps took by its own clock: from one update of the
optimizer to the next, with the device waited for, as a script does that prints its loss."""

import json
import os
import runpy
import sys
import time

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

ends = []
under_way = 0  # an optimizer may call another one


def begins(*_):
    global under_way
    under_way += 1


def updated(*_):
    global under_way
    under_way -= 1
    if under_way == 0:
        torch.cuda.synchronize()
        ends.append(time.perf_counter())


register_optimizer_step_pre_hook(begins)
register_optimizer_step_post_hook(updated)
script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
runpy.run_path(script, run_name="__main__")
if int(os.environ.get("RANK", 0)) == 0:
    print("step times " + json.dumps([b - a for a, b in zip(ends, ends[1:])]), flush=True)
