"""GPT-2 124M with DDP: nanoGPT's train.py (LayerNorm, GELU, learned positions) and the later speed runs on the same frame
(RMS norm, rotary positions, query-key norm, squared ReLU).

    torchrun --nproc-per-node 8 gpt.py --batch 12 --accumulate 5 --compile
    torchrun --nproc-per-node 8 gpt.py --modern --heads 6 --batch 64 --compile --fused
"""

from __future__ import annotations

import argparse
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from common import finish, measure, start


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=12, heads=12, width=768, length=1024, vocabulary=50304, batch=12, accumulate=1, steps=3).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("modern", "bias", "compile", "tune", "fused", "clip"):
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
    decay = [p for p in raw.parameters() if p.dim() >= 2]
    rest = [p for p in raw.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=6e-4, betas=(0.9, 0.95), fused=args.fused or None)
    tokens = torch.randint(args.vocabulary, (args.batch, args.length + 1), device=device)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step():
        for micro in range(args.accumulate):
            last = micro + 1 == args.accumulate
            with contextlib.nullcontext() if last or world == 1 else model.no_sync():
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(x, y) / args.accumulate
                loss.backward()
        if args.clip:
            torch.nn.utils.clip_grad_norm_(raw.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    measure(step, steps=args.steps, synchronize=False)
    finish()


if __name__ == "__main__":
    main()
