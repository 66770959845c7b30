"""Transformer-XL as NVIDIA's example trains it: half-precision model with FP32 master weights, memory of one segment,
relative attention without a fused kernel, adaptive softmax over WikiText-103's vocabulary; LAMB (base) or Adam (large).

    transformer_xl.py base:32:192 large:16:256      size:batch:length, each a range of its name
"""

from __future__ import annotations

import argparse
import gc
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure, start

VOCABULARY, CUTOFFS = 267735, [19997, 39997, 199997]
SIZES = {"base": (512, 8, 64, 2048, 16), "large": (1024, 16, 64, 4096, 18)}  # width, heads, head, inner, layers


class Attention(nn.Module):
    def __init__(self, width, heads, head):
        super().__init__()
        self.heads, self.head = heads, head
        self.qkv = nn.Linear(width, 3 * heads * head, bias=False)
        self.r = nn.Linear(width, heads * head, bias=False)
        self.out, self.norm = nn.Linear(heads * head, width, bias=False), nn.LayerNorm(width)

    def shift(self, x):
        zero = x.new_zeros(*x.shape[:3], 1)
        padded = torch.cat([zero, x], dim=3).view(x.size(0), x.size(1), x.size(3) + 1, x.size(2))
        return padded.narrow(2, 1, x.size(3)).view_as(x)

    def forward(self, w, r, bias_w, bias_r, mask, memory):
        q_len, batch = w.size(0), w.size(1)
        q, k, v = self.qkv(torch.cat([memory, w], 0)).chunk(3, dim=-1)
        r = self.r(r).view(r.size(0), self.heads, self.head)
        q = q[-q_len:].view(q_len, batch, self.heads, self.head)
        k, v = (t.view(-1, batch, self.heads, self.head) for t in (k, v))
        ac = torch.einsum("ibnd,jbnd->bnij", q + bias_w, k)
        bd = self.shift(torch.einsum("ibnd,jnd->bnij", q + bias_r, r))
        score = (ac + bd).mul_(1 / self.head ** 0.5).masked_fill_(mask, float("-inf"))
        y = torch.einsum("bnij,jbnd->ibnd", F.softmax(score, dim=3), v).contiguous().view(q_len, batch, -1)
        return self.norm(w + F.dropout(self.out(y), 0.1))


class Layer(nn.Module):
    def __init__(self, width, heads, head, inner):
        super().__init__()
        self.attention = Attention(width, heads, head)
        self.feed = nn.Sequential(nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(inner, width), nn.Dropout(0.1))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, *rest):
        x = self.attention(x, *rest)
        return self.norm(x + self.feed(x))


class TransformerXL(nn.Module):
    def __init__(self, width, heads, head, inner, layers):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Layer(width, heads, head, inner) for _ in range(layers))
        self.bias_w, self.bias_r = nn.Parameter(torch.zeros(heads, head)), nn.Parameter(torch.zeros(heads, head))
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(width, VOCABULARY, CUTOFFS, div_value=1.0)
        self.register_buffer("frequency", 1 / (10000 ** (torch.arange(0.0, width, 2.0) / width)))

    def forward(self, tokens, targets, memory):
        x = F.dropout(self.embedding(tokens) * self.width ** 0.5, 0.1)
        q_len, k_len = tokens.size(0), tokens.size(0) + memory[0].size(0)
        mask = torch.triu(x.new_ones(q_len, k_len), diagonal=1 + k_len - q_len).bool()
        angle = torch.outer(torch.arange(k_len - 1, -1, -1.0, device=x.device, dtype=x.dtype), self.frequency)
        r = F.dropout(torch.cat([angle.sin(), angle.cos()], -1), 0.1)
        kept = []
        for layer, m in zip(self.layers, memory):
            kept.append(x.detach())
            x = layer(x, r, self.bias_w, self.bias_r, mask, m)
        loss = -self.softmax(F.dropout(x, 0.1).view(-1, self.width), targets.reshape(-1)).output
        return loss.float().mean(), kept


class Lamb:
    def __init__(self, parameters):
        self.p = parameters
        self.m, self.v = ([torch.zeros_like(p) for p in parameters] for _ in range(2))

    @torch.no_grad()
    def step(self, gradients):
        for p, g, m, v in zip(self.p, gradients, self.m, self.v):
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            update = m / v.sqrt().add_(1e-6)
            ratio = p.pow(2).sum().sqrt().clamp(0, 10) / update.pow(2).sum().sqrt().clamp_(min=1e-9)
            p.sub_(update.mul_(ratio * 0.01))


def zipf(count):
    """Ranks of words as text has them: probability falls with rank."""
    weight = 1 / (torch.arange(VOCABULARY, dtype=torch.float64) + 2.7)
    return torch.multinomial(weight.float(), count, replacement=True)


def train(args, spec, device):
    size, batch, length = spec.split(":")
    batch, length = int(batch), int(length)
    width, *_, layers = SIZES[size]
    with torch.device(device):
        model = TransformerXL(*SIZES[size])
    if not args.fp32:
        model.half()
    own = list(model.parameters())
    master = own if args.fp32 else [p.detach().float() for p in own]
    optimizer = Lamb(master) if size == "base" else torch.optim.Adam(master)
    tokens = zipf(batch * (length + 1)).view(length + 1, batch).to(device)
    memory = [torch.zeros(length, batch, width, device=device, dtype=own[0].dtype) for _ in range(layers)]

    def step():
        nonlocal memory
        loss, memory = model(tokens[:-1], tokens[1:], memory)
        (loss if args.fp32 else loss * 1024).backward()
        gradients = [p.grad if args.fp32 else p.grad.float().div_(1024) for p in own]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        for g in gradients:
            g.mul_(0.25 / (norm + 1e-6))
        if size == "base":
            optimizer.step(gradients)
        else:
            for m, g in zip(master, gradients):
                m.grad = g
            optimizer.step()
        if not args.fp32:
            with torch.no_grad():
                for p, m in zip(own, master):
                    p.copy_(m)
        model.zero_grad(set_to_none=True)

    measure(step, spec, steps=args.steps, synchronize=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("configurations", nargs="+", help="size:batch:length")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    _, _, device = start()
    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    for spec in args.configurations:
        try:
            train(args, spec, device)
        except torch.OutOfMemoryError as error:  # the others go on
            print(f"{spec}: {str(error)[:200]}", file=sys.stderr, flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    finish()


if __name__ == "__main__":
    main()
