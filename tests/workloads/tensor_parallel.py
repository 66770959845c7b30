"""Tensor parallelism with DTensor; with --sequence also sequence parallelism and loss parallelism."""

import argparse

import torch
import torch.nn.functional as F
from common import Transformer, finish, loss_of, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

parser = argparse.ArgumentParser()
parser.add_argument("--sequence", action="store_true")
args = parser.parse_args()

job = start()
mesh = init_device_mesh("cuda", (job.world,))
torch.manual_seed(0)
model = Transformer().to(job.device)
if args.sequence:
    parallelize_module(model, mesh, {
        "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    block_plan = {
        "norm1": SequenceParallel(), "norm2": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(),
        "attention.o": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "feed_forward.gate": ColwiseParallel(), "feed_forward.up": ColwiseParallel(),
        "feed_forward.down": RowwiseParallel(output_layouts=Shard(1))}
else:
    block_plan = {
        "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(),
        "attention.o": RowwiseParallel(), "feed_forward.gate": ColwiseParallel(), "feed_forward.up": ColwiseParallel(),
        "feed_forward.down": RowwiseParallel()}
for block in model.blocks:
    parallelize_module(block, mesh, block_plan)
# Sharded and plain parameters do not mix in one multi-tensor call.
sharded = [p for p in model.parameters() if isinstance(p, DTensor)]
plain = [p for p in model.parameters() if not isinstance(p, DTensor)]
optimizer = torch.optim.AdamW([{"params": group} for group in (sharded, plain) if group], lr=1e-4, foreach=True)
for step in range(4):
    torch.manual_seed(step)  # every rank works on the same tokens
    data = torch.randint(8192, (4, 513)).to(job.device)
    tokens, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(tokens)
    if args.sequence:
        with loss_parallel():
            F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten()).backward()
    else:
        loss_of(logits, targets).backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
