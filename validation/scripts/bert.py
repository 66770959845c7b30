"""BERT as NVIDIA's example trains it: pre-training (masked words and next sentence, LAMB every so many micro-batches) and
fine-tuning on SQuAD (one answer span, Adam in every step); FP16 model with FP32 master weights, or FP32.

    bert.py pretrain:large:128:256 --fp16        steps of one and two micro-batches: ranges `…@1`, `…@2`
    bert.py squad:base:384:96 squad:large:384:28 --fp16
"""

from __future__ import annotations

import argparse
import gc
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure, start

SIZES = {"base": (768, 12, 12), "large": (1024, 16, 24)}  # width, heads, layers
VOCABULARY, DROP = 30528, 0.1


def weights_of(scores, scale, mask):
    return F.dropout(F.softmax(scores / scale + mask, dim=-1), DROP)


def joined(x, residual, norm):
    return norm(F.dropout(x, DROP) + residual)


class Layer(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        compiled = torch.compile if fused else lambda f: f  # where the example's scripted model is fused
        self.weights_of, self.joined, self.gelu = compiled(weights_of), compiled(joined), compiled(F.gelu)

    def forward(self, x, mask):  # length x batch x width
        length, batch, width = x.shape
        q, v = (p(x).view(length, batch * self.heads, self.head).transpose(0, 1) for p in (self.q, self.v))
        k = self.k(x).view(length, batch * self.heads, self.head).permute(1, 2, 0)
        scores = torch.bmm(q, k).view(batch, self.heads, length, length)
        weights = self.weights_of(scores, math.sqrt(self.head), mask).view(-1, length, length)
        y = torch.bmm(weights, v).transpose(0, 1).contiguous().view(length, batch, width)
        x = self.joined(self.out(y), x, self.norm1)
        return self.joined(self.down(self.gelu(self.up(x))), x, self.norm2)


class Bert(nn.Module):
    def __init__(self, task, width, heads, layers):
        super().__init__()
        self.task = task
        self.words, self.positions, self.types = nn.Embedding(VOCABULARY, width), nn.Embedding(512, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads, task == "pretrain") for _ in range(layers))
        if task == "squad":
            self.answers = nn.Linear(width, 2)
            return
        self.pooled, self.sentence = nn.Linear(width, width), nn.Linear(width, 2)
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, tokens, types, attended, chosen):
        places = torch.arange(tokens.shape[1], device=tokens.device)[None].expand_as(tokens)
        x = F.dropout(self.norm(self.words(tokens) + self.positions(places) + self.types(types)), DROP)
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * -10000.0
        x = x.transpose(0, 1)
        for layer in self.layers:
            x = layer(x, mask)
        x = x.transpose(0, 1).contiguous()
        if self.task == "squad":
            return self.answers(x).split(1, dim=-1)
        masked = self.transform_norm(F.gelu(self.transform(x.view(-1, x.shape[-1]).index_select(0, chosen))))
        return F.linear(masked, self.words.weight) + self.bias, self.sentence(torch.tanh(self.pooled(x[:, 0])))


def train(args, spec, device):
    task, size, length, batch = spec.split(":")
    length, batch = int(length), int(batch)
    with torch.device(device):
        model = Bert(task, *SIZES[size])
    if args.fp16:
        model.half()
    own = list(model.parameters())
    masters = [p.detach().float() for p in own] if args.fp16 else own
    optimizer = torch.optim.Adam(masters, lr=1e-5, fused=True)
    words = 20 * length // 128  # masked in a sequence
    tokens, types = torch.randint(VOCABULARY, (batch, length), device=device), torch.zeros(batch, length, dtype=torch.long, device=device)
    attended, chosen = torch.ones_like(types), torch.randint(batch * length, (batch * words,), device=device)
    labels = torch.zeros(batch * words, dtype=torch.long, device=device)
    ends = torch.zeros(batch, dtype=torch.long, device=device)

    def step(micro_batches):
        for _ in range(micro_batches):
            first, second = model(tokens, types, attended, chosen)
            if task == "squad":
                loss = (F.cross_entropy(first.squeeze(-1), ends) + F.cross_entropy(second.squeeze(-1), ends)) / 2
            else:
                loss = F.cross_entropy(first.float(), labels) + F.cross_entropy(second.float(), ends)
            (loss * 1024 if args.fp16 else loss).backward()
        if args.fp16:
            gradients = [m.grad if m.grad is not None else torch.empty_like(m) for m in masters]
            torch._foreach_copy_(gradients, [p.grad for p in own])
            torch._foreach_mul_(gradients, 1 / 1024)
            for m, g in zip(masters, gradients):
                m.grad = g
        torch.nn.utils.clip_grad_norm_(masters, 1.0, foreach=True)
        optimizer.step()
        if args.fp16:
            with torch.no_grad():
                torch._foreach_copy_(own, masters)
        model.zero_grad(set_to_none=True)

    if task == "squad":
        measure(lambda: step(1), spec, steps=args.steps, synchronize=False)
    else:
        for n in (1, 2):
            measure(lambda: step(n), f"{spec}@{n}", steps=args.steps, synchronize=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configurations", nargs="+", help="task:size:length:batch")
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
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
