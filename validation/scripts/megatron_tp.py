"""A GPT with tensor and sequence parallelism as Megatron-LM of 2022 trains it (arXiv 2205.05198): FP16, attention computed in
full and recomputed in the backward pass, fused softmax, GELU and dropout.

    torchrun --nproc-per-node 8 megatron_tp.py --layers 48 --width 6144 --heads 64 --batch 4
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from common import finish, measure, start


def gathered(x, asynchronous=False):
    """The whole sequence (first dimension) of its shards."""
    out = torch.empty(x.shape[0] * dist.get_world_size(), *x.shape[1:], dtype=x.dtype, device=x.device)
    return out, dist.all_gather_into_tensor(out, x.contiguous(), async_op=asynchronous)


def scattered(x, asynchronous=False):
    """This rank's shard of the sum."""
    out = torch.empty(x.shape[0] // dist.get_world_size(), *x.shape[1:], dtype=x.dtype, device=x.device)
    return out, dist.reduce_scatter_tensor(out, x.contiguous(), async_op=asynchronous)


class ColumnProduct(torch.autograd.Function):
    """Gathers the sequence, multiplies; keeps the shard only and gathers again for the gradient of the weight."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return F.linear(gathered(x)[0], weight)

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        whole, arriving = gathered(x, asynchronous=True)
        grad_x, leaving = scattered(grad.matmul(weight), asynchronous=True)
        arriving.wait()
        grad_weight = grad.flatten(0, 1).t().matmul(whole.flatten(0, 1))
        leaving.wait()
        return grad_x, grad_weight


class RowProduct(torch.autograd.Function):
    """Multiplies; the sum over ranks is left scattered along the sequence."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return scattered(F.linear(x, weight))[0]

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        whole = gathered(grad)[0]
        return whole.matmul(weight), whole.flatten(0, 1).t().matmul(x.flatten(0, 1))


@torch.compile(dynamic=False)
def bias_gelu(x, bias):
    return F.gelu(x + bias, approximate="tanh")


@torch.compile(dynamic=False)
def bias_dropout_add(x, bias, residual):
    return residual + F.dropout(x + bias, 0.1)


@torch.compile(dynamic=False)
def masked_softmax(scores, mask, scale):
    return torch.softmax((scores * scale).masked_fill(mask, -10000.0).float(), -1).half()


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        world = dist.get_world_size()
        self.heads, self.head = heads // world, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def parameter(*shape):
            return nn.Parameter(torch.zeros(*shape))

        self.qkv, self.qkv_bias = parameter(3 * width // world, width), parameter(3 * width // world)
        self.out, self.out_bias = parameter(width, width // world), parameter(width)
        self.up, self.up_bias = parameter(4 * width // world, width), parameter(4 * width // world)
        self.down, self.down_bias = parameter(width, 4 * width // world), parameter(width)

    def core(self, q, k, v, mask):  # length × batch · heads × head each
        length, pairs, _ = q.shape
        scores = torch.bmm(q.transpose(0, 1), k.permute(1, 2, 0))
        weights = F.dropout(masked_softmax(scores, mask, 1 / math.sqrt(self.head)), 0.1)
        return torch.bmm(weights, v.transpose(0, 1)).transpose(0, 1).reshape(length, pairs // self.heads, -1)

    def forward(self, x, mask):
        qkv = ColumnProduct.apply(self.norm1(x), self.qkv) + self.qkv_bias
        length, batch, _ = qkv.shape
        q, k, v = (t.reshape(length, batch * self.heads, self.head)
                   for t in qkv.view(length, batch, self.heads, 3 * self.head).chunk(3, dim=-1))
        y = checkpoint(self.core, q, k, v, mask, use_reentrant=False)
        x = bias_dropout_add(RowProduct.apply(y, self.out), self.out_bias, x)
        y = bias_gelu(ColumnProduct.apply(self.norm2(x), self.up), self.up_bias)
        return bias_dropout_add(RowProduct.apply(y, self.down), self.down_bias, x)


class SumOfRanks(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(context, grad):
        return grad


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.rank, world = dist.get_rank(), dist.get_world_size()
        self.part = args.vocabulary // world
        self.words = nn.Parameter(torch.zeros(self.part, args.width))
        self.positions = nn.Parameter(torch.zeros(args.length, args.width))
        self.layers = nn.ModuleList(Layer(args.width, args.heads) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)
        self.register_buffer("mask", torch.ones(args.length, args.length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, tokens, targets):  # length × batch
        length = tokens.shape[0] // dist.get_world_size()
        mine = (tokens >= self.rank * self.part) & (tokens < (self.rank + 1) * self.part)
        words = F.embedding((tokens - self.rank * self.part) * mine, self.words) * mine[..., None]
        here = slice(self.rank * length, (self.rank + 1) * length)
        x = F.dropout(SumOfRanks.apply(words)[here] + self.positions[here, None], 0.1)
        for layer in self.layers:
            x = layer(x, self.mask)
        logits = ColumnProduct.apply(self.norm(x), self.words).float()
        highest = logits.detach().amax(-1)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        logits = logits - highest[..., None]
        mine = (targets >= self.rank * self.part) & (targets < (self.rank + 1) * self.part)
        at = ((targets - self.rank * self.part) * mine)[..., None]
        chosen = SumOfRanks.apply(logits.gather(-1, at)[..., 0] * mine)
        return (SumOfRanks.apply(logits.exp().sum(-1)).log() - chosen).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=48, width=6144, heads=64, length=2048, batch=4, vocabulary=51200, steps=2).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    _, _, device = start()
    with torch.device(device):
        torch.set_default_dtype(torch.half)
        model = GPT(args)
        torch.set_default_dtype(torch.float)
    masters = [p.detach().float() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True)
    tokens = torch.randint(args.vocabulary, (args.length + 1, args.batch), device=device)

    def step():
        loss = model(tokens[:-1], tokens[1:])
        (loss * 4096).backward()
        for p, m in zip(model.parameters(), masters):
            m.grad = p.grad.float()
        gradients = [m.grad for m in masters]
        torch._foreach_mul_(gradients, 1 / 4096)
        torch.nn.utils.clip_grad_norm_(masters, 1.0, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(list(model.parameters()), masters)
        model.zero_grad(set_to_none=True)

    with torch.autograd.set_multithreading_enabled(False):
        measure(step, steps=args.steps, warmup=1, synchronize=False)
    finish()


if __name__ == "__main__":
    main()
