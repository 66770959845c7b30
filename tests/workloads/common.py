"""What the workloads share: a start-up as every distributed script has one, a small transformer, a loop."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Job:
    rank: int
    world: int
    device: torch.device


def start() -> Job:
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    torch.manual_seed(rank)
    if world > 1:
        # Naming the device came with torch 2.3.
        named = "device_id" in inspect.signature(dist.init_process_group).parameters
        dist.init_process_group("nccl", **({"device_id": device} if named else {}))
    return Job(rank, world, device)


def finish(job: Job) -> None:
    torch.cuda.synchronize()
    if job.world > 1:
        dist.destroy_process_group()
    if job.rank == 0:
        print("done", flush=True)


class Attention(nn.Module):
    def __init__(self, width: int, head: int = 64):
        super().__init__()
        self.head = head
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.o = nn.Linear(width, width, bias=False)

    def forward(self, x):
        # Heads are counted from the projection, which tensor parallelism may have made narrower.
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, self.head).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gate, self.up = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


Norm = getattr(nn, "RMSNorm", nn.LayerNorm)  # torch 2.4 brought the first


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.attention, self.feed_forward = Attention(width), FeedForward(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, layers: int = 4, width: int = 512, vocabulary: int = 8192):
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def tokens_for(job: Job, batch: int, length: int, vocabulary: int):
    data = torch.randint(vocabulary, (batch, length + 1)).to(job.device)
    return data[:, :-1].contiguous(), data[:, 1:].contiguous()


def train(job: Job, model, optimizer, steps: int = 4, batch: int = 4, length: int = 512, vocabulary: int = 8192,
          autocast: bool = True) -> None:
    for _ in range(steps):
        tokens, targets = tokens_for(job, batch, length, vocabulary)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = loss_of(model(tokens), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
