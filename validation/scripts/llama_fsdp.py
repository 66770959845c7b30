"""Llama with FSDP2 as torchtitan trains it: bf16 compute on sharded fp32 parameters, fp32 gradient reduction, selective
activation checkpointing by op (every second matmul is recomputed) or of whole blocks, AdamW, clipping.

    torchrun --nproc-per-node 8 llama_fsdp.py --model llama3-8b --batch 2 --length 8192 --selective
    torchrun --nproc-per-node 4 llama_fsdp.py --batch 4 --length 4096 --accumulate 2 --bf16 --full --compile --fused
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure, start
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:  # before torch 2.6
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard

MODELS = {  # width, layers, heads, key-value heads, hidden, vocabulary
    "llama3-8b": (4096, 32, 32, 8, 14336, 128256),
    "llama2-7b": (4096, 32, 32, 32, 11008, 32000),
    "llama2-13b": (5120, 40, 40, 40, 13824, 32000),
}


def rotate(x, table):
    a = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(a * table[None, : x.shape[1], None, :]).flatten(3).type_as(x)


class RMSNorm(nn.Module):
    """As eager torch computed it until a fused kernel came: one kernel per operation, in FP32."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self, width, heads, kv):
        super().__init__()
        self.head = width // heads
        self.groups = heads // kv
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, kv * self.head, bias=False), nn.Linear(width, kv * self.head, bias=False)
        self.o = nn.Linear(width, width, bias=False)

    def forward(self, x, table):
        b, s, _ = x.shape
        q, k, v = (p(x).view(b, s, -1, self.head) for p in (self.q, self.k, self.v))
        q, k = rotate(q, table), rotate(k, table)
        if self.groups > 1:
            k, v = (t[:, :, :, None, :].expand(b, s, t.shape[2], self.groups, self.head).reshape(b, s, -1, self.head)
                    for t in (k, v))
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.o(y.transpose(1, 2).contiguous().view(b, s, -1))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, width, heads, kv, hidden):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.attention, self.feed_forward = Attention(width, heads, kv), FeedForward(width, hidden)

    def forward(self, x, table):
        x = x + self.attention(self.norm1(x), table)
        return x + self.feed_forward(self.norm2(x))


class Llama(nn.Module):
    def __init__(self, width, layers, heads, kv, hidden, vocabulary, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads, kv, hidden) for _ in range(layers))
        self.norm, self.output = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head, self.length, self.table = width // heads, length, None

    def angles(self, device):
        frequency = 1.0 / (500000.0 ** (torch.arange(0, self.head, 2, device=device).float() / self.head))
        angle = torch.outer(torch.arange(self.length, device=device).float(), frequency)
        self.table = torch.polar(torch.ones_like(angle), angle)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.table)
        return self.output(self.norm(x))


KEPT = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_efficient_attention.default,
        torch.ops.aten._scaled_dot_product_flash_attention.default,
        torch.ops.aten._scaled_dot_product_cudnn_attention.default,
        torch.ops._c10d_functional.reduce_scatter_tensor.default}


def selective():
    count = defaultdict(int)

    def policy(context, function, *args, **kwargs):
        mode = "recompute" if context.is_recompute else "forward"
        if function == torch.ops.aten.mm.default:
            count[mode] += 1
            if count[mode] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if function in KEPT else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def start_with_groups():
    """As start(), but groups are not split from one communicator, and a node's GPUs are counted anew: some ranks of many can run."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl")
    return torch.distributed.get_rank(), torch.distributed.get_world_size(), device


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="llama3-8b")
    for name, value in dict(batch=1, length=8192, replicate=1, steps=2, layers=0, accumulate=1).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("selective", "full", "compile", "fused", "bf16", "reduce-bf16"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    rank, world, device = start() if args.replicate == 1 else start_with_groups()
    width, layers, heads, kv, hidden, vocabulary = MODELS[args.model]
    with torch.device("meta"):
        model = Llama(width, args.layers or layers, heads, kv, hidden, vocabulary, args.length)
    mesh = None
    if world > 1:
        mesh = init_device_mesh("cuda", (args.replicate, world // args.replicate), mesh_dim_names=("replicate", "shard")) \
            if args.replicate > 1 else init_device_mesh("cuda", (world,))
    for i, block in enumerate(model.layers):
        if args.selective:
            block = checkpoint_wrapper(block, context_fn=selective, preserve_rng_state=False)
        elif args.full:
            block = checkpoint_wrapper(block, preserve_rng_state=False)
        if args.compile:
            block = torch.compile(block, fullgraph=True)
        model.layers[i] = block
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16 if args.reduce_bf16 else torch.float32)
    if args.bf16:  # parameters, and so the optimizer's state, in bf16
        model.to(torch.bfloat16)
    for i, block in enumerate(model.layers if world > 1 else ()):
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=i + 1 < len(model.layers))
    if world > 1:
        fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    model.angles(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=args.fused, foreach=not args.fused)
    tokens = torch.randint(vocabulary, (args.batch, args.length + 1), device=device)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step():
        optimizer.zero_grad()
        for micro in range(args.accumulate):
            if world > 1 and args.accumulate > 1:
                model.set_requires_gradient_sync(micro + 1 == args.accumulate)
            loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
            (loss / args.accumulate).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()

    measure(step, steps=args.steps, warmup=2, synchronize=False)
    finish()


if __name__ == "__main__":
    main()
