"""GPT-2 124M with DDP: nanoGPT's train.py (LayerNorm, GELU, learned positions) and the later speed runs on the same frame
(RMS norm, rotary positions, query-key norm, squared ReLU).

    torchrun --nproc-per-node 8 gpt.py --batch 12 --accumulate 5 --compile --host-data
    torchrun --nproc-per-node 8 gpt.py --modern --heads 6 --batch 64 --compile --fused
"""

from __future__ import annotations

import argparse
import contextlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure, start
from torch.nn.parallel import DistributedDataParallel


class Rotary(nn.Module):
    def __init__(self, width, base=10000):
        super().__init__()
        self.register_buffer("frequency", 1.0 / (base ** (torch.arange(0, width, 2).float() / width)))
        self.cached = None

    def forward(self, x):
        length = x.shape[1]
        if self.cached is None or self.cached[0].shape[0] != length:
            t = torch.arange(length, device=x.device).type_as(self.frequency)
            angle = torch.outer(t, self.frequency)
            self.cached = angle.cos().bfloat16(), angle.sin().bfloat16()
        cos, sin = self.cached[0][None, :, None, :], self.cached[1][None, :, None, :]
        a, b = x.chunk(2, dim=3)
        return torch.cat([a * cos + b * sin, b * cos - a * sin], 3).type_as(x)


class Block(nn.Module):
    def __init__(self, width, heads, modern, bias):
        super().__init__()
        self.heads, self.modern = heads, modern
        if modern:
            self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
            self.rotary = Rotary(width // heads)
        else:
            self.norm1, self.norm2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
            self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def attention(self, x):
        batch, length, width = x.shape
        if self.modern:
            q, k, v = (p(x).view(batch, length, self.heads, -1) for p in (self.q, self.k, self.v))
            q, k = F.rms_norm(q, (q.size(-1),)), F.rms_norm(k, (k.size(-1),))
            q, k = self.rotary(q), self.rotary(k)
        else:
            q, k, v = (t.view(batch, length, self.heads, -1) for t in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))

    def forward(self, x):
        if self.modern:
            x = x + self.attention(F.rms_norm(x, (x.size(-1),)))
            return x + self.down(F.relu(self.up(F.rms_norm(x, (x.size(-1),)))).square())
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.modern = args.modern
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        if not args.modern:
            self.positions = nn.Embedding(args.length, args.width)
            self.norm = nn.LayerNorm(args.width, bias=args.bias)
        self.blocks = nn.ModuleList(Block(args.width, args.heads, args.modern, args.bias) for _ in range(args.layers))
        self.head = nn.Linear(args.width, args.vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        x = F.rms_norm(x, (x.size(-1),)) if self.modern else x + self.positions(torch.arange(tokens.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        x = F.rms_norm(x, (x.size(-1),)) if self.modern else self.norm(x)
        logits = self.head(x)
        if self.modern:
            logits = logits.float()
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


@torch.compile
def orthogonal(g, steps=5):
    """The nearest orthogonal matrix, by Newton-Schulz iterations in bf16."""
    x = g.bfloat16()
    x = x / (x.norm() + 1e-7)
    x = x.T if g.size(0) > g.size(1) else x
    for _ in range(steps):
        a = x @ x.T
        b = a @ x
        x = 3.4445 * x - 4.7750 * b + 2.0315 * a @ b
    return x.T if g.size(0) > g.size(1) else x


class Muon:
    """Momentum whose update is made orthogonal; matrices are dealt to the ranks, updates summed over them."""

    def __init__(self, parameters, rank, world):
        self.parameters, self.rank, self.world, self.momentum = list(parameters), rank, world, {}

    @torch.no_grad()
    def step(self):
        updates = torch.zeros(sum(p.numel() for p in self.parameters), device="cuda", dtype=torch.bfloat16)
        parts = updates.split([p.numel() for p in self.parameters])
        for i, (p, part) in enumerate(zip(self.parameters, parts)):
            if i % self.world != self.rank:
                continue
            momentum = self.momentum.setdefault(p, torch.zeros_like(p))
            momentum.mul_(0.95).add_(p.grad)
            part.copy_(orthogonal(p.grad.add(momentum, alpha=0.95)).mul_(max(p.shape) ** 0.5).flatten())
        if self.world > 1:
            torch.distributed.all_reduce(updates)
        for p, part in zip(self.parameters, parts):
            p.add_(part.view_as(p).type_as(p), alpha=-3e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=12, heads=12, width=768, length=1024, vocabulary=50304, batch=12, accumulate=1, steps=3).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("modern", "bias", "compile", "tune", "fused", "clip", "host-data", "muon"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    rank, world, device = start()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    if args.tune:
        from torch._inductor import config as inductor

        inductor.coordinate_descent_tuning = True
    with torch.device(device):
        model = GPT(args)
    raw = model
    if args.compile:
        model = torch.compile(model)
    if world > 1:
        model = DistributedDataParallel(model, device_ids=[device.index])
    muon = Muon(raw.blocks.parameters(), rank, world) if args.muon else None
    others = [p for p in raw.parameters() if not muon or all(p is not q for q in muon.parameters)]
    decay, rest = [p for p in others if p.dim() >= 2], [p for p in others if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=6e-4, betas=(0.9, 0.95), fused=args.fused or None)
    tokens = torch.randint(args.vocabulary, (args.batch, args.length + 1), device=device)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    text = np.random.randint(args.vocabulary, size=1 << 22).astype(np.uint16) if args.host_data else None

    def fetch():  # as nanoGPT until February 2023: pageable memory, so the copy waits for the device
        starts = torch.randint(len(text) - args.length - 1, (args.batch,))
        rows = [torch.stack([torch.from_numpy(text[i + at : i + at + args.length].astype(np.int64)) for i in starts]) for at in (0, 1)]
        return [r.to(device) for r in rows]

    def step():
        nonlocal x, y
        for micro in range(args.accumulate):
            if args.host_data:
                x, y = fetch()
            last = micro + 1 == args.accumulate
            with contextlib.nullcontext() if last or world == 1 else model.no_sync():
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(x, y) / args.accumulate
                loss.backward()
        if args.clip:
            torch.nn.utils.clip_grad_norm_(raw.parameters(), 1.0)
        optimizer.step()
        if muon:
            muon.step()
        raw.zero_grad(set_to_none=True)
        if args.host_data:
            loss.item()  # logged in every iteration

    measure(step, steps=args.steps, synchronize=False)
    finish()


if __name__ == "__main__":
    main()
