"""torch.distributed.pipelining with any of its schedules: layers large enough that the GPU, not the host, sets the
pace."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, schedules

parser = argparse.ArgumentParser()
parser.add_argument("--schedule", default="1f1b")
parser.add_argument("--chunks", type=int, default=1)
parser.add_argument("--micro", type=int, default=16)
parser.add_argument("--stages", type=int, default=0, help="the rest of the ranks are data parallel")
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--uneven", action="store_true", help="one more layer in the second half of the stages")
args = parser.parse_args()
KINDS = {
    "1f1b": schedules.Schedule1F1B,
    "gpipe": schedules.ScheduleGPipe,
    "interleaved": schedules.ScheduleInterleaved1F1B,
    "zb": schedules.ScheduleInterleavedZeroBubble,
    "zbv": schedules.ScheduleZBVZeroBubble,
    "dualpipev": schedules.ScheduleDualPipeV,
}
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
pipe = args.stages or world
mesh = dist.device_mesh.init_device_mesh("cuda", (pipe, world // pipe), mesh_dim_names=("pp", "dp"))
stage, group = mesh.get_local_rank("pp"), mesh.get_group("pp")
kind = KINDS[args.schedule]
v = args.schedule in ("zbv", "dualpipev")
chunks = 2 if v else args.chunks
total = pipe * chunks
mine = [stage, total - 1 - stage] if v else [stage + i * pipe for i in range(chunks)]
WIDTH, LENGTH, VOCABULARY, BATCH = 1024, 2048, 1024, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def module(index):
    parts = [Block() for _ in range(2 + (args.uneven and index >= total // 2))]
    if index == 0:
        parts.insert(0, nn.Embedding(VOCABULARY, WIDTH))
    if index == total - 1:
        parts += [nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)]
    return nn.Sequential(*parts).to(device)


def loss(out, target):
    return nn.functional.cross_entropy(out.flatten(0, 1).float(), target.flatten())


def stage_of(part, index):
    """With its shapes: to infer them, each stage asks its neighbour, which may be one that does not run."""
    first, last = index == 0, index == total - 1
    hidden = torch.empty(BATCH, LENGTH, WIDTH, device=device, requires_grad=True)
    takes = torch.empty(BATCH, LENGTH, dtype=torch.int64, device=device) if first else hidden
    gives = torch.empty(BATCH, LENGTH, VOCABULARY, device=device, requires_grad=True) if last else hidden
    return PipelineStage(part, index, total, device, group=group, input_args=takes, output_args=gives,
                         input_grads=None if first else hidden.detach(), output_grads=None if last else hidden.detach())


modules = [module(i) for i in mine]
stages = [stage_of(m, i) for m, i in zip(modules, mine)]
schedule = kind(stages[0] if args.schedule in ("1f1b", "gpipe") else stages, args.micro, loss_fn=loss)
optimizer = torch.optim.AdamW([p for m in modules for p in m.parameters()], lr=1e-3, fused=True)
tokens = torch.randint(VOCABULARY, (BATCH * args.micro, LENGTH + 1)).to(device)
for _ in range(args.steps):
    arguments = (tokens[:, :-1],) if 0 in mine else ()
    targets = {"target": tokens[:, 1:]} if total - 1 in mine else {}
    schedule.step(*arguments, **targets)
    if world > pipe:
        for m in modules:
            for p in m.parameters():
                dist.all_reduce(p.grad, group=mesh.get_group("dp"))
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
