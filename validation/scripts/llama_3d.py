"""A LLaMA under tensor, pipeline and data parallelism with ZeRO-1, as arXiv 2311.05610 describes its set-up: BF16, 1F1B,
RMSNorm, rotary positions, SwiGLU, vocabulary of 128,000, with or without sequence parallelism, recomputing nothing or every layer.

    torchrun --nnodes 8 --nproc-per-node 8 llama_3d.py --layers 80 --width 8192 --heads 64 --inner 22016 --tensor 4 --pipeline 4 \
        --batch 1 --micro-batches 128

What it does between layers is what their trainer does (github.com/Aleph-Alpha/scaling): each column-parallel product has an all-reduce of
its own in the backward pass, and nothing runs beside it; with sequence parallelism the norm's output is gathered once for all products that
read it; the head's logits are gathered, and every tensor rank computes the loss and the accuracy of the whole vocabulary in FP32; stages
send and receive one tensor at a time; gradients are summed in BF16 and all-reduced in FP32 once a step, and each data rank updates its
share of the parameters and passes it on.
"""

from __future__ import annotations

import argparse
import math
import os

import megatron
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure
from megatron import Places, RowSum, gathered, scattered
from torch.autograd import Variable
from torch.utils.checkpoint import checkpoint


class Copy(torch.autograd.Function):
    """The input of a column-parallel product: its gradient is a sum over the tensor ranks."""

    @staticmethod
    def forward(context, x, places):
        context.places = places
        return x.view_as(x)

    @staticmethod
    def backward(context, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad, group=context.places.tensor_group)
        return grad, None


class Gather(torch.autograd.Function):
    """Along the sequence, in front of tensor-parallel products."""

    @staticmethod
    def forward(context, x, places):
        context.places = places
        return gathered(x, places)[0]

    @staticmethod
    def backward(context, grad):
        return scattered(grad, context.places)[0], None


class Norm(nn.Module):
    def __init__(self, width, fused):
        super().__init__()
        self.weight, self.fused = nn.Parameter(torch.ones(width)), fused

    def forward(self, x):
        if self.fused:
            return F.rms_norm(x, (x.shape[-1],), self.weight)
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


def rotated(x, cos, sin):  # length × batch × heads × head
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Layer(nn.Module):
    def __init__(self, args, places):
        super().__init__()
        width, tensor, inner = args.width, places.tensor, args.inner
        self.args, self.places = args, places
        self.heads, self.head = args.heads // tensor, width // args.heads
        self.norm1, self.norm2 = Norm(width, args.fused_norm), Norm(width, args.fused_norm)
        self.qkv, self.out = (nn.Parameter(torch.zeros(*s)) for s in ((3 * width // tensor, width), (width, width // tensor)))
        self.gate, self.up, self.down = (nn.Parameter(torch.zeros(*s)) for s in (
            (inner // tensor, width), (inner // tensor, width), (width, inner // tensor)))
        angles = torch.outer(torch.arange(args.length), torch.arange(self.head // 2)).repeat(1, 2)[:, None, None]
        self.cos, self.sin = angles.cos(), angles.sin()

    def normed(self, norm, x):
        x = norm(x)
        return Gather.apply(x, self.places) if self.args.sequence_parallel and self.places.tensor > 1 else x

    def column(self, x, weight):
        alone = self.places.tensor == 1 or self.args.sequence_parallel
        return F.linear(x if alone else Copy.apply(x, self.places), weight)

    def row(self, x, weight):
        y = F.linear(x, weight)
        return y if self.places.tensor == 1 else RowSum.apply(y, self.places, self.args.sequence_parallel)

    def forward(self, x):
        qkv = self.column(self.normed(self.norm1, x), self.qkv)
        length, batch, _ = qkv.shape
        q, k, v = qkv.view(length, batch, self.heads, 3 * self.head).chunk(3, dim=-1)
        q, k = rotated(q, self.cos, self.sin), rotated(k, self.cos, self.sin)
        y = F.scaled_dot_product_attention(*(t.permute(1, 2, 0, 3) for t in (q, k, v)), is_causal=True)
        x = x + self.row(y.permute(2, 0, 1, 3).reshape(length, batch, -1), self.out)
        y = self.normed(self.norm2, x)
        return x + self.row(F.silu(self.column(y, self.gate)) * self.column(y, self.up), self.down)


class Concatenated(torch.autograd.Function):
    """The tensor ranks' parts of the logits, side by side on each of them."""

    @staticmethod
    def forward(context, x, places):
        context.places, context.part = places, x.shape[-1]
        parts = [torch.empty_like(x) for _ in range(places.tensor)]
        dist.all_gather(parts, x.contiguous(), group=places.tensor_group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(context, gradient):
        first = context.places.tensor_rank * context.part
        return gradient[..., first:first + context.part].contiguous(), None


class Chunk(nn.Module):
    def __init__(self, args, places, first, last):
        super().__init__()
        self.args, self.places, self.first, self.last = args, places, first, last
        self.part = args.vocabulary // places.tensor
        if first:
            self.words = nn.Parameter(torch.zeros(self.part, args.width))
        self.layers = nn.ModuleList(Layer(args, places) for _ in range(args.layers // places.pipeline))
        if last:
            self.norm, self.head = Norm(args.width, args.fused_norm), nn.Parameter(torch.zeros(self.part, args.width))

    mine = megatron.Chunk.mine

    def embed(self, tokens):
        if self.places.tensor == 1:
            return F.embedding(tokens, self.words)
        inside, at = self.mine(tokens)
        return RowSum.apply(F.embedding(at, self.words) * inside[..., None], self.places, self.args.sequence_parallel)

    def loss(self, x, targets):
        x = self.norm(x)
        if self.places.tensor > 1:
            x = Gather.apply(x, self.places) if self.args.sequence_parallel else Copy.apply(x, self.places)
        logits = F.linear(x, self.head)
        if self.places.tensor > 1:
            logits = Concatenated.apply(logits, self.places)
        logits, targets = logits.float().flatten(0, 1), targets.flatten()
        loss = F.cross_entropy(logits, targets, reduction="none")
        (logits.argmax(-1) == targets).float().mean()  # the accuracy it logs
        return loss.mean()

    def forward(self, x, data):
        if self.first:
            x = self.embed(data[:-1])
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True) if self.args.recompute == "full" else layer(x)
        return self.loss(x, data[1:]) if self.last else x


class Wires(megatron.Wires):
    def empty(self):
        elements = math.prod(self.shape) // (1 if self.args.sequence_parallel else self.places.tensor)
        return torch.empty(elements, dtype=torch.bfloat16, device="cuda")

    def exchange(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        """One after the other; even stages send before they receive, so that nobody waits for himself."""
        from_prev, from_next = self.empty() if recv_prev else None, self.empty() if recv_next else None
        before, after = self.places.before, self.places.after
        sends = [(dist.send, self.piece(x), to) for x, to in ((send_next, after), (send_prev, before)) if x is not None]
        receives = [(dist.recv, x, of) for x, of in ((from_prev, before), (from_next, after)) if x is not None]
        for call, x, peer in sends + receives if self.places.stage % 2 == 0 else receives + sends:
            call(x, peer)
        return self.whole(from_prev), self.whole(from_next)

    def whole(self, x):
        if self.places.tensor == 1:
            return None if x is None else x.view(self.shape).requires_grad_()
        return super().whole(x)


class Trainer(megatron.Trainer):
    def __init__(self, args, places, device):
        self.args, self.places, self.wires, self.device = args, places, Wires(args, places), device
        self.chunks = [Chunk(args, places, places.first(), places.last())]
        self.parameters = list(self.chunks[0].parameters())
        count = sum(p.numel() for p in self.parameters)
        self.share = -(-count // places.data)
        self.buffer = torch.zeros(self.share * places.data)
        end = 0
        for p in self.parameters:
            p.grad = self.buffer[end:end + p.numel()].view_as(p)
            end += p.numel()
        self.master = torch.zeros(self.share, dtype=torch.float)
        self.optimizer = torch.optim.AdamW([self.master], lr=1e-4, fused=True)
        self.tokens = torch.randint(args.vocabulary, (args.length + 1, args.batch), device="cpu")

    def data(self):
        tokens = self.tokens.to(self.device)
        if self.places.tensor > 1:
            dist.broadcast(tokens, dist.get_rank() - self.places.tensor_rank, group=self.places.tensor_group)
        return tokens

    def forward(self, chunk, x):
        out = self.chunks[chunk](x, self.data())
        return out / self.args.micro_batches if self.chunks[chunk].last else out

    def backward(self, x, out, grad):
        grad = torch.ones_like(out) if grad is None else grad
        Variable._execution_engine.run_backward((out,), (grad,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        return None if x is None else x.grad

    def step(self):
        places = self.places
        self.buffer.zero_()
        self.whole() if places.pipeline == 1 else self.plain()
        if self.args.sequence_parallel and places.tensor > 1:
            norms = [p.grad for name, p in self.chunks[0].named_parameters() if "norm" in name]
            flat = torch.cat([g.reshape(-1) for g in norms])
            dist.all_reduce(flat, group=places.tensor_group)
            torch._foreach_copy_([g.view(-1) for g in norms], list(flat.split([g.numel() for g in norms])))
        if places.data > 1:
            for bucket in self.buffer.split(500_000_000):
                whole = bucket.div_(places.data).float()
                dist.all_reduce(whole, group=places.data_group)
                bucket.copy_(whole)
                del whole
        first = (dist.get_rank() // places.tensor % places.data) * self.share
        self.master.grad = self.buffer[first:first + self.share].float()
        square = self.master.grad.square().sum()
        dist.all_reduce(square)
        self.master.grad.mul_(min(1.0, 1.0 / (square.item() ** 0.5 + 1.0)))
        self.optimizer.step()
        self.master.grad = None
        updated = self.master.to(self.buffer.dtype)
        if places.data > 1:
            dist.all_gather_into_tensor(self.buffer, updated, group=places.data_group)
            updated = self.buffer
        with torch.no_grad():
            pieces = updated[:sum(p.numel() for p in self.parameters)].split([p.numel() for p in self.parameters])
            torch._foreach_copy_([p.view(-1) for p in self.parameters], list(pieces))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = dict(layers=40, width=5120, heads=40, inner=13824, length=2048, batch=1, vocabulary=128000, tensor=1, pipeline=1, steps=1)
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--recompute", choices=["none", "full"], default="none")
    parser.add_argument("--sequence-parallel", action="store_true")
    parser.add_argument("--fused-norm", action="store_true")
    parser.add_argument("--rounds", action="store_true",
                        help="measure steps of one and of two micro-batches per stage (step@1, step@2) instead")
    args = parser.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    places = Places(args.tensor, args.pipeline)
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        trainer = Trainer(args, places, device)
        torch.set_default_dtype(torch.float)
    wanted = {"step": args.micro_batches}
    if args.rounds:
        wanted = {"step@1": args.pipeline, "step@2": 2 * args.pipeline}
    with torch.autograd.set_multithreading_enabled(False):
        args.micro_batches = 1  # enough to be warm
        measure(trainer.step, steps=0, warmup=1)
        for name, args.micro_batches in wanted.items():
            measure(trainer.step, name=name, steps=args.steps, warmup=0)
    finish()


if __name__ == "__main__":
    main()
