"""torch.distributed.pipelining: one or two stages a rank, 1F1B, interleaved 1F1B or GPipe."""

import argparse

import torch
import torch.nn as nn
from common import Block, finish, loss_of, start
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

parser = argparse.ArgumentParser()
parser.add_argument("--schedule", choices=["1f1b", "interleaved", "gpipe"], default="1f1b")
args = parser.parse_args()

WIDTH, VOCABULARY, LENGTH, BATCH, MICRO = 512, 8192, 256, 8, 4
job = start()
stages_per_rank = 2 if args.schedule == "interleaved" else 1
stages = job.world * stages_per_rank


def stage_module(index: int) -> nn.Module:
    layers: list[nn.Module] = [Block(WIDTH), Block(WIDTH)]
    if index == 0:
        layers.insert(0, nn.Embedding(VOCABULARY, WIDTH))
    if index == stages - 1:
        layers += [nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)]
    return nn.Sequential(*layers).to(job.device)


mine = [job.rank + i * job.world for i in range(stages_per_rank)]
modules = [stage_module(i) for i in mine]
parts = [PipelineStage(module, i, stages, job.device) for module, i in zip(modules, mine)]
if args.schedule == "interleaved":
    schedule = ScheduleInterleaved1F1B(parts, n_microbatches=MICRO, loss_fn=loss_of)
else:
    kind = Schedule1F1B if args.schedule == "1f1b" else ScheduleGPipe
    schedule = kind(parts[0], n_microbatches=MICRO, loss_fn=loss_of)
optimizer = torch.optim.AdamW([p for m in modules for p in m.parameters()], lr=1e-4, fused=True)
first, last = 0 in mine, stages - 1 in mine
for step in range(4):
    torch.manual_seed(step)
    data = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).to(job.device)
    tokens, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    losses: list[torch.Tensor] = []
    arguments = (tokens,) if first else ()
    if last:
        schedule.step(*arguments, target=targets, losses=losses)
        assert len(losses) == MICRO, losses
    else:
        schedule.step(*arguments)
    optimizer.step()
    optimizer.zero_grad()
finish(job)
