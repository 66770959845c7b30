"""Trains a GPT on random tokens: bf16 autocast, fused AdamW, gradient clipping, DDP under torchrun.

An ordinary PyTorch script. Nothing in it knows about Maya.

    python examples/train_gpt.py --layers 12
    torchrun --nproc-per-node 8 examples/train_gpt.py
"""

import argparse
import math
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, length: int, layers: int, heads: int, width: int):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.initialize)
        for block in self.blocks:
            for projection in (block.out, block.down):
                nn.init.normal_(projection.weight, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def initialize(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--batch", type=int, default=16, help="sequences per GPU and step")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--compile", choices=["default", "reduce-overhead", "max-autotune"])
    return parser.parse_args()


def main():
    args = parse()
    world, local = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if world > 1:
        dist.init_process_group("nccl", device_id=device)
    rank = dist.get_rank() if world > 1 else 0

    with torch.device(device):
        model = GPT(args.vocabulary, args.length, args.layers, args.heads, args.width)
    if rank == 0:
        print(
            f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters, {world} x "
            f"{torch.cuda.get_device_name()}"
        )
    if world > 1:
        model = DistributedDataParallel(model, device_ids=[local], gradient_as_bucket_view=True)
    if args.compile:
        model = torch.compile(model, mode=args.compile)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    generator = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        began = time.perf_counter()
        tokens = torch.randint(args.vocabulary, (args.batch, args.length + 1), generator=generator).pin_memory()
        tokens = tokens.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if rank == 0 and step == args.steps - 1:
            print(f"step {step}: loss {loss.item():.3f}, {time.perf_counter() - began:.3f} s")
    torch.cuda.synchronize()
    if rank == 0:
        print(f"done; {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at the peak")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
