"""fully_shard (FSDP2) with mixed precision, clipping and, if asked, activation checkpointing."""

import argparse

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:  # torch 2.4 and 2.5
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard

from common import Transformer, finish, loss_of, start, tokens_for

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--layers", type=int, default=4)
args = parser.parse_args()

job = start()
mesh = init_device_mesh("cuda", (job.world,))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
with torch.device("meta"):
    model = Transformer(layers=args.layers)
for i, block in enumerate(model.blocks):
    if args.checkpoint:
        block = model.blocks[i] = checkpoint_wrapper(block)
    fully_shard(block, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
model.to_empty(device=job.device)
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    tokens, targets = tokens_for(job, 4, 512, 8192)
    loss_of(model(tokens), targets).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
finish(job)
