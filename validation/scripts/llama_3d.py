"""A LLaMA under tensor, pipeline and data parallelism with ZeRO-1, as arXiv 2311.05610 describes its set-up: BF16, 1F1B,
RMSNorm, rotary positions, SwiGLU, vocabulary of 128,000, with or without sequence parallelism, recomputing nothing or every layer.

    torchrun --nnodes 8 --nproc-per-node 8 llama_3d.py --layers 80 --width 8192 --heads 64 --inner 22016 --tensor 4 --pipeline 4 \
        --batch 1 --micro-batches 128

What it does between layers is what their trainer does (github.com/Aleph-Alpha/scaling): each column-parallel product has an all-reduce of
its own in the backward pass, and nothing runs beside it; with sequence parallelism the norm's output is gathered once for all products that
read it; the head's logits are gathered, and every tensor rank computes the loss and the accuracy of the whole vocabulary in FP32; stages
send and receive one tensor at a time, whole from each tensor rank; gradients are summed in BF16 and all-reduced in FP32 once a step, and
each data rank updates its share of the parameters and passes it on.

Embedding, layers, last norm and head are items of one list, which is cut into stages of equally many items (the first stages have one more
where that leaves a remainder). Recomputation is of every item, the head too. A stage keeps what it sent until its gradient arrives, and
the last one keeps its logits in two buffers that only the next micro-batches overwrite.
"""

from __future__ import annotations

import argparse
import os

import megatron
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure
from megatron import Places, RowSum, gathered, scattered
from torch.autograd import Variable
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop


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


def gather_into(parts, x, group):
    """dist.all_gather() as it was at the time: one NCCL call into one buffer, from which the parts are copied. (That of torch 2.15 is a
    broadcast from each rank.)"""
    flat = torch.empty(len(parts), *x.shape, dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(flat, x, group=group)
    for part, received in zip(parts, flat):
        part.copy_(received)


class Concatenated(torch.autograd.Function):
    """The tensor ranks' parts of the logits, side by side on each of them."""

    @staticmethod
    def forward(context, x, places):
        context.places, context.part = places, x.shape[-1]
        parts = [torch.empty_like(x) for _ in range(places.tensor)]
        gather_into(parts, x.contiguous(), places.tensor_group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(context, gradient):
        first = context.places.tensor_rank * context.part
        return gradient[..., first:first + context.part].contiguous(), None


def items_of_stage(items, stages, stage):
    """Equally many for each stage; the first ones have one more where that leaves a remainder."""
    return items // stages + (stage < items % stages)


class Chunk(nn.Module):
    def __init__(self, args, places, first, last):
        super().__init__()
        self.args, self.places, self.first, self.last = args, places, first, last
        self.part = args.vocabulary // places.tensor
        if first:
            self.words = nn.Parameter(torch.zeros(self.part, args.width))
        items = items_of_stage(1 + args.layers + 2, places.pipeline, places.stage)
        self.layers = nn.ModuleList(Layer(args, places) for _ in range(items - first - 2 * last))
        if last:
            self.norm, self.head = Norm(args.width, args.fused_norm), nn.Parameter(torch.zeros(self.part, args.width))

    mine = megatron.Chunk.mine

    def item(self, call, x):
        if self.args.recompute != "full":
            return call(x)
        with set_checkpoint_early_stop(False):
            return checkpoint(call, x, use_reentrant=False)

    def embed(self, tokens):
        if self.places.tensor == 1:
            return F.embedding(tokens, self.words)
        inside, at = self.mine(tokens)
        return RowSum.apply(F.embedding(at, self.words) * inside[..., None], self.places, self.args.sequence_parallel)

    def normed(self, x):
        x = self.norm(x)
        return Gather.apply(x, self.places) if self.args.sequence_parallel and self.places.tensor > 1 else x

    def logits(self, x):
        alone = self.places.tensor == 1 or self.args.sequence_parallel
        logits = F.linear(x if alone else Copy.apply(x, self.places), self.head)
        return logits if self.places.tensor == 1 else Concatenated.apply(logits, self.places)

    def loss(self, logits, targets):
        logits, targets = logits.float().flatten(0, 1), targets.flatten()
        loss = F.cross_entropy(logits, targets, reduction="none")
        (logits.argmax(-1) == targets).float().mean()  # the accuracy it logs
        return loss.mean()

    def forward(self, x, data):
        """What the next stage gets; of the last stage the logits."""
        if self.first:
            x = self.item(self.embed, data[:-1])
        for layer in (*self.layers, *((self.normed, self.logits) if self.last else ())):
            x = self.item(layer, x)
        return x


class Wires(megatron.Wires):
    def __init__(self, args, places):
        super().__init__(args, places)
        self.buffers = {}

    def buffer(self, peer):
        """What comes from a stage is received in one place; activations are copied from there."""
        if peer not in self.buffers:
            self.buffers[peer] = torch.empty(self.shape, dtype=torch.bfloat16, device="cuda")
        return self.buffers[peer]

    def exchange(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        """One after the other; even stages send before they receive, so that nobody waits for himself."""
        before, after = self.places.before, self.places.after
        sends = [(dist.send, x.detach(), to) for x, to in ((send_next, after), (send_prev, before)) if x is not None]
        receives = [(dist.recv, self.buffer(of), of) for wanted, of in ((recv_prev, before), (recv_next, after)) if wanted]
        for call, x, peer in sends + receives if self.places.stage % 2 == 0 else receives + sends:
            call(x, peer)
        return self.buffer(before).clone().requires_grad_() if recv_prev else None, self.buffer(after) if recv_next else None


class Trainer(megatron.Trainer):
    BUCKET = 500_000_000  # elements of a reduction or of what data ranks pass on at a time

    def __init__(self, args, places, device):
        self.args, self.places, self.wires, self.device = args, places, Wires(args, places), device
        self.chunks = [Chunk(args, places, places.first(), places.last())]
        self.parameters = list(self.chunks[0].parameters())
        sizes = [p.numel() for p in self.parameters]
        shapes = [p.shape for p in self.parameters]
        for p in self.parameters:
            p.data = torch.empty(0)
        self.share = -(-sum(sizes) // places.data)
        self.flat = torch.zeros(self.share * places.data)
        for p, part, shape in zip(self.parameters, self.flat[:sum(sizes)].split(sizes), shapes):
            p.data = part.view(shape)
        self.data_rank = dist.get_rank() // places.tensor % places.data
        self.master = self.flat[self.data_rank * self.share:][:self.share].float()
        self.optimizer = torch.optim.AdamW([self.master], lr=1e-4)
        self.tokens = torch.randint(args.vocabulary, (args.length + 1, args.batch), device="cpu")
        self.kept, self.count = {}, 0

    def data(self):
        tokens = self.tokens.to(self.device)
        if self.places.tensor > 1:
            dist.broadcast(tokens, dist.get_rank() - self.places.tensor_rank, group=self.places.tensor_group)
        return tokens

    def forward(self, chunk, x):
        data, chunk = self.data(), self.chunks[chunk]
        out = chunk(x, data)
        if not chunk.last:
            return out
        self.kept[self.count % 2] = out
        self.count += 1
        return chunk.loss(out, data[1:]) / self.args.micro_batches

    def backward(self, x, out, grad):
        grad = torch.ones_like(out) if grad is None else grad
        Variable._execution_engine.run_backward((out,), (grad,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        return None if x is None else x.grad

    @staticmethod
    def let_go(out):
        """It is kept."""

    def reduce(self):
        """Gradients in FP32 over the data ranks, a bucket at a time."""
        bucket = []
        for p in self.parameters:
            bucket.append(p.grad)
            if p is self.parameters[-1] or sum(g.numel() for g in bucket) > self.BUCKET:
                flat = torch._C._nn.flatten_dense_tensors(bucket)
                whole = flat.div_(self.places.data).float()
                dist.all_reduce(whole, group=self.places.data_group)
                flat.copy_(whole)
                for grad, part in zip(bucket, torch._C._nn.unflatten_dense_tensors(flat, bucket)):
                    grad.copy_(part)
                bucket = []
                del whole, flat

    def norm(self):
        square = 0.0
        for p in self.parameters:
            square += p.grad.mul_(1.0).norm(2) ** 2
        for group, size in ((self.places.tensor_group, self.places.tensor), (self.places.stage_group, self.places.pipeline)):
            if size > 1:
                square = torch.tensor([float(square)], device=self.device)
                dist.all_reduce(square, group=group)
        return float(square) ** 0.5

    def own(self):
        """The gradient of this rank's share; the others' are dropped."""
        self.master.grad = torch.zeros_like(self.master)
        low, end = self.data_rank * self.share, 0
        for p in self.parameters:
            begin, end = end, end + p.numel()
            first, last = max(begin, low), min(end, low + self.share)
            if first < last:
                self.master.grad[first - low:last - low].copy_(p.grad.view(-1)[first - begin:last - begin])
            p.grad = None

    def pass_on(self):
        places = self.places
        shares = self.flat.split(self.share)
        shares[self.data_rank].copy_(self.master.detach())
        pieces = max(1, self.share * places.data // self.BUCKET)
        for parts in zip(*(share.tensor_split(pieces) for share in shares)):
            gather_into(parts, parts[self.data_rank], places.data_group)

    def step(self):
        places = self.places
        self.kept.clear()
        self.whole() if places.pipeline == 1 else self.plain()
        if self.args.sequence_parallel and places.tensor > 1:
            for name, p in self.chunks[0].named_parameters():
                if "norm" in name:
                    dist.all_reduce(p.grad, group=places.tensor_group)
        if places.data > 1:
            self.reduce()
        norm = self.norm()
        self.own()
        self.master.grad.mul_(min(1.0, 1.0 / (norm + 1.0)))
        self.optimizer.step()
        self.master.grad = None
        if places.data > 1:
            self.pass_on()


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
