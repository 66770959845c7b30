"""A GPT as Megatron-LM of 2022 trains it (arXiv 2205.05198): FP16, tensor and pipeline parallelism, 1F1B or interleaved
1F1B, with or without sequence parallelism, recomputing whole layers or attention only. DP is what is left of the world.

    torchrun --nnodes 8 --nproc-per-node 8 megatron.py --layers 96 --width 12288 --heads 96 --pipeline 8 --interleave 3 \
        --micro-batches 64 --recompute full

What it does between kernels is that program's too: timers and messages end in a synchronization, tensors between stages travel
in pieces, one for each tensor rank, gradients are added up in FP16 by one kernel per parameter, the optimizer reads two numbers back.
"""

from __future__ import annotations

import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure
from torch.autograd import Variable
from torch.utils.checkpoint import checkpoint


class Places:
    """Where this rank stands: tensor ranks are neighbours, then data ranks, then stages."""

    def __init__(self, tensor, pipeline):
        rank, world = dist.get_rank(), dist.get_world_size()
        self.tensor, self.pipeline, self.data = tensor, pipeline, world // (tensor * pipeline)
        self.tensor_rank, self.stage = rank % tensor, rank // (tensor * self.data)
        block = tensor * self.data  # ranks of a stage
        self.tensor_group = self.group(range(i, i + tensor) for i in range(0, world, tensor))
        self.data_group = self.group(range(s + t, s + block, tensor) for s in range(0, world, block) for t in range(tensor))
        stages = [range(i, world, block) for i in range(block)]
        self.stage_group = self.group(stages)
        self.ends_group = self.group((s[0], s[-1]) for s in stages)
        self.model_group = self.group([r for i in range(d * tensor, (d + 1) * tensor) for r in stages[i]] for d in range(self.data))
        self.before, self.after = (rank - block) % world, (rank + block) % world

    @staticmethod
    def group(lists):
        """As Megatron-LM does: every rank makes every group and keeps its own."""
        mine = None
        for ranks in lists:
            ranks = sorted(set(ranks))
            made = dist.new_group(ranks) if len(ranks) > 1 else None
            if dist.get_rank() in ranks:
                mine = made
        return mine

    def first(self):
        return self.stage == 0

    def last(self):
        return self.stage == self.pipeline - 1


def gathered(x, places, asynchronous=False):
    out = torch.empty(x.shape[0] * places.tensor, *x.shape[1:], dtype=x.dtype, device=x.device)
    return out, dist.all_gather_into_tensor(out, x.contiguous(), group=places.tensor_group, async_op=asynchronous)


def scattered(x, places, asynchronous=False):
    out = torch.empty(x.shape[0] // places.tensor, *x.shape[1:], dtype=x.dtype, device=x.device)
    return out, dist.reduce_scatter_tensor(out, x.contiguous(), group=places.tensor_group, async_op=asynchronous)


class ColumnProduct(torch.autograd.Function):
    """x · weightᵀ of a weight whose rows are spread over the tensor ranks; its input's gradient is a sum over them."""

    @staticmethod
    def forward(context, x, weight, places, scatter):
        context.save_for_backward(x, weight)
        context.places, context.scatter = places, scatter
        return torch.matmul(gathered(x, places)[0] if scatter else x, weight.t())

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        places = context.places
        if context.scatter:
            x, arriving = gathered(x, places, asynchronous=True)
        grad_x = grad.matmul(weight)
        if context.scatter:
            arriving.wait()
            grad_x, leaving = scattered(grad_x, places, asynchronous=True)
        else:
            leaving = dist.all_reduce(grad_x, group=places.tensor_group, async_op=True)
        grad_weight = grad.flatten(0, 1).t().matmul(x.flatten(0, 1))
        leaving.wait()
        return grad_x, grad_weight, None, None


class RowSum(torch.autograd.Function):
    """The sum over tensor ranks, whole or scattered along the sequence."""

    @staticmethod
    def forward(context, x, places, scatter):
        context.places, context.scatter = places, scatter
        if scatter:
            return scattered(x, places)[0]
        dist.all_reduce(x, group=places.tensor_group)
        context.mark_dirty(x)
        return x

    @staticmethod
    def backward(context, grad):
        return (gathered(grad, context.places)[0] if context.scatter else grad), None, None


@torch.compile(dynamic=False)
def bias_gelu(x, bias):
    return F.gelu(x + bias, approximate="tanh")


@torch.compile(dynamic=False)
def bias_dropout_add(x, bias, residual):
    return residual + F.dropout(x + bias, 0.1)


class Layer(nn.Module):
    def __init__(self, args, places):
        super().__init__()
        width, tensor = args.width, places.tensor
        self.places, self.scatter, self.recompute = places, args.sequence_parallel, args.recompute
        self.heads, self.head = args.heads // tensor, width // args.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def parameter(*shape):
            return nn.Parameter(torch.zeros(*shape))

        self.qkv, self.qkv_bias = parameter(3 * width // tensor, width), parameter(3 * width // tensor)
        self.out, self.out_bias = parameter(width, width // tensor), parameter(width)
        self.up, self.up_bias = parameter(4 * width // tensor, width), parameter(4 * width // tensor)
        self.down, self.down_bias = parameter(width, 4 * width // tensor), parameter(width)

    def column(self, x, weight):
        return ColumnProduct.apply(x, weight, self.places, self.scatter)

    def row(self, x, weight):
        return RowSum.apply(torch.matmul(x, weight.t()), self.places, self.scatter)

    def core(self, q, k, v):  # length × batch · heads × head each
        length, pairs, _ = q.shape
        scores = torch.empty(pairs, length, length, dtype=q.dtype, device=q.device)
        scores = torch.baddbmm(scores, q.transpose(0, 1), k.permute(1, 2, 0), beta=0.0, alpha=1 / math.sqrt(self.head))
        # Their kernel masks as it goes, reading no mask: one pass over the scores, as torch's softmax is.
        weights = F.dropout(torch.softmax(scores, -1), 0.1)
        return torch.bmm(weights, v.transpose(0, 1)).transpose(0, 1).reshape(length, pairs // self.heads, -1)

    def forward(self, x):
        qkv = self.column(self.norm1(x), self.qkv) + self.qkv_bias
        length, batch, _ = qkv.shape
        q, k, v = (t.reshape(length, batch * self.heads, self.head)
                   for t in qkv.view(length, batch, self.heads, 3 * self.head).chunk(3, dim=-1))
        y = checkpoint(self.core, q, k, v, use_reentrant=True) if self.recompute == "selective" else self.core(q, k, v)
        x = bias_dropout_add(self.row(y, self.out), self.out_bias, x)
        y = bias_gelu(self.column(self.norm2(x), self.up), self.up_bias)
        return bias_dropout_add(self.row(y, self.down), self.down_bias, x)


class SumOfRanks(torch.autograd.Function):
    @staticmethod
    def forward(context, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(context, grad):
        return grad, None


class Chunk(nn.Module):
    """Some layers in a row; the first one embeds, the last one has the loss."""

    def __init__(self, args, places, first, last):
        super().__init__()
        self.args, self.places, self.first, self.last = args, places, first, last
        self.part = args.vocabulary // places.tensor
        if first or last:
            self.words = nn.Parameter(torch.zeros(self.part, args.width))
        if first:
            self.positions = nn.Parameter(torch.zeros(args.length, args.width))
        self.layers = nn.ModuleList(Layer(args, places) for _ in range(args.layers // (places.pipeline * args.interleave)))
        if last:
            self.norm = nn.LayerNorm(args.width)

    def mine(self, numbers):
        low = self.places.tensor_rank * self.part
        inside = (numbers >= low) & (numbers < low + self.part)
        return inside, (numbers - low) * inside

    def embed(self, tokens):
        inside, at = self.mine(tokens)
        words = RowSum.apply(F.embedding(at, self.words) * inside[..., None], self.places, self.args.sequence_parallel)
        positions = self.positions
        if self.args.sequence_parallel:
            positions = positions.chunk(self.places.tensor)[self.places.tensor_rank]
        return F.dropout(words + positions[:, None], 0.1)

    def loss(self, x, targets):
        group = self.places.tensor_group
        logits = ColumnProduct.apply(self.norm(x), self.words, self.places, self.args.sequence_parallel).float()
        highest = logits.detach().amax(-1)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=group)
        logits = logits - highest[..., None]
        inside, at = self.mine(targets)
        chosen = SumOfRanks.apply(logits.gather(-1, at[..., None])[..., 0] * inside, group)
        return (SumOfRanks.apply(logits.exp().sum(-1), group).log() - chosen).mean()

    def forward(self, x, data):
        if self.first:
            x = self.embed(data[:-1])
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True) if self.args.recompute == "full" else layer(x)
        return self.loss(x, data[1:]) if self.last else x


class Wires:
    """Messages between stages."""

    def __init__(self, args, places):
        self.args, self.places = args, places
        shard = places.tensor if args.sequence_parallel else 1
        self.shape = (args.length // shard, args.batch, args.width)

    def empty(self):
        elements = math.prod(self.shape)
        if not self.args.sequence_parallel:
            elements //= self.places.tensor
        return torch.empty(elements, dtype=torch.half, device="cuda")

    def piece(self, x):
        x = x.detach().view(-1)
        return x if self.args.sequence_parallel else x.chunk(self.places.tensor)[self.places.tensor_rank]

    def whole(self, x):
        if x is None:
            return None
        if not self.args.sequence_parallel:
            x = gathered(x, self.places)[0]
        return x.view(self.shape).requires_grad_()

    def exchange(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        """(from the stage before, from the stage after)"""
        from_prev, from_next = self.empty() if recv_prev else None, self.empty() if recv_next else None
        group, before, after = self.places.stage_group, self.places.before, self.places.after
        ops = []
        if send_prev is not None:
            ops.append(dist.P2POp(dist.isend, self.piece(send_prev), before, group))
        if from_prev is not None:
            ops.append(dist.P2POp(dist.irecv, from_prev, before, group))
        if send_next is not None:
            ops.append(dist.P2POp(dist.isend, self.piece(send_next), after, group))
        if from_next is not None:
            ops.append(dist.P2POp(dist.irecv, from_next, after, group))
        if ops:
            for work in dist.batch_isend_irecv(ops):
                work.wait()
        torch.cuda.synchronize()
        return self.whole(from_prev), self.whole(from_next)


class Trainer:
    def __init__(self, args, places, device):
        self.args, self.places, self.wires, self.device = args, places, Wires(args, places), device
        stages = range(args.interleave)
        self.chunks = [Chunk(args, places, places.first() and c == 0, places.last() and c == args.interleave - 1) for c in stages]
        self.parameters = [p for chunk in self.chunks for p in chunk.parameters()]
        self.words = [chunk.words for chunk in self.chunks if hasattr(chunk, "words")]
        self.buffer = torch.zeros(sum(p.numel() for p in self.parameters), dtype=torch.half)
        end = 0
        for p in self.parameters:
            p.sum = self.buffer[end:end + p.numel()].view_as(p)
            end += p.numel()
            p.register_post_accumulate_grad_hook(self.add_up)
        self.masters = [p.detach().float() for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, fused=True)
        self.tokens = torch.randint(args.vocabulary, (args.length + 1, args.batch))

    @staticmethod
    def add_up(p):
        p.sum.add_(p.grad)
        p.grad = None

    def data(self):
        """The tensor ranks' first reads it, the others get it; the mask is made anew."""
        root = dist.get_rank() - self.places.tensor_rank
        sizes = torch.tensor([*self.tokens.shape], device=self.device)
        dist.broadcast(sizes, root, group=self.places.tensor_group)
        sizes.cpu()
        tokens = self.tokens.to(self.device)
        dist.broadcast(tokens, root, group=self.places.tensor_group)
        torch.tril(torch.ones(self.args.length, self.args.length, device=self.device)) < 0.5
        return tokens

    def forward(self, chunk, x):
        torch.cuda.synchronize()
        tokens = self.data()
        out = self.chunks[chunk](x, tokens)
        if self.chunks[chunk].last:
            out = out / self.args.micro_batches
        torch.cuda.synchronize()
        return out

    def backward(self, x, out, grad):
        torch.cuda.synchronize()
        if grad is None:
            out = out * 4096
            grad = torch.ones_like(out)
        # autograd.backward() would compare with the size of the output, whose memory is given back by now.
        Variable._execution_engine.run_backward((out,), (grad,), False, False, (), allow_unreachable=True, accumulate_grad=True)
        torch.cuda.synchronize()
        return None if x is None else x.grad

    @staticmethod
    def let_go(out):
        """Only its graph is needed once it has been sent."""
        if out is not None:
            out.data = torch.empty(1, dtype=out.dtype, device=out.device)

    def plain(self):
        """1F1B."""
        places, wires, count = self.places, self.wires, self.args.micro_batches
        warm = min(places.pipeline - places.stage - 1, count)
        first, last = places.first(), places.last()
        kept = []

        def receive():
            return None if first else wires.exchange(recv_prev=True)[0]

        for _ in range(warm):
            x = receive()
            out = self.forward(0, x)
            wires.exchange(send_next=out)
            kept.append((x, out))
            self.let_go(out)
        x = receive() if warm < count else None
        for k in range(count - warm):
            out = self.forward(0, x)
            grad = None if last else wires.exchange(send_next=out, recv_next=True)[1]
            kept.append((x, out))
            if not last:
                self.let_go(out)
            x, out = kept.pop(0)
            grad = self.backward(x, out, grad)
            x = None
            if not first:
                x = wires.exchange(send_prev=grad, recv_prev=k < count - warm - 1)[0]
        for _ in range(warm):
            x, out = kept.pop(0)
            grad = self.backward(x, out, wires.exchange(recv_next=True)[1])
            if not first:
                wires.exchange(send_prev=grad)

    def interleaved(self):
        """1F1B over chunks: a stage's k-th piece of work is of micro-batch groups as large as the pipeline."""
        places, wires, stages, chunks = self.places, self.wires, self.places.pipeline, self.args.interleave
        count = self.args.micro_batches * chunks
        warm = count if self.args.micro_batches == stages else min(count, (stages - places.stage - 1) * 2 + (chunks - 1) * stages)
        inputs, outputs, grads = ([[] for _ in range(chunks)] for _ in range(3))

        def chunk_of(k, forward=True):
            c = k % (stages * chunks) // stages
            return c if forward else chunks - c - 1

        def forward(k):
            c = chunk_of(k)
            if self.chunks[c].first and len(inputs[c]) == len(outputs[c]):
                inputs[c].append(None)
            outputs[c].append(self.forward(c, inputs[c][-1]))
            return None if self.chunks[c].last else outputs[c][-1]

        def backward(k):
            c = chunk_of(k, False)
            if self.chunks[c].last and not grads[c]:
                grads[c].append(None)
            grad = self.backward(inputs[c].pop(0), outputs[c].pop(0), grads[c].pop(0))
            return None if self.chunks[c].first else grad

        inputs[0].append(None if places.first() else wires.exchange(recv_prev=True)[0])
        for k in range(warm):
            out = forward(k)
            following = chunk_of(k + 1)
            wanted = k < count - 1 and not (places.first() and following == 0)
            turn = k == warm - 1 and warm < count
            x, grad = wires.exchange(send_next=out, recv_prev=wanted, recv_next=turn and not places.last())
            if turn:
                grads[chunks - 1].append(grad)
            inputs[following].append(x)
            self.let_go(out)
        for k in range(count - warm):
            out = forward(k + warm)
            grad = backward(k)
            # The first stage gets what the last one sent a whole turn ago, and the other way round.
            if places.first():
                following = chunk_of(k + warm - (stages - 1)) + 1
                wanted = following < chunks
            else:
                following, wanted = chunk_of(k + warm + 1), True
            if places.last():
                back = chunk_of(k - (stages - 1), False) - 1
                wanted_back = back >= 0
            else:
                back, wanted_back = chunk_of(k + 1, False), True
            wanted = wanted and k < count - warm - 1
            x, g = wires.exchange(send_next=out, send_prev=grad, recv_prev=wanted, recv_next=wanted_back)
            self.let_go(out)
            if wanted:
                inputs[following].append(x)
            if wanted_back:
                grads[back].append(g)
        if warm == count:
            grads[chunks - 1].append(None if places.last() else wires.exchange(recv_next=True)[1])
        for k in range(count - warm, count):
            grad = backward(k)
            back = chunk_of(k + 1, False)
            wanted = k < count - 1 and not (places.last() and back == chunks - 1)
            grads[back].append(wires.exchange(send_prev=grad, recv_next=wanted)[1])

    def whole(self):
        for _ in range(self.args.micro_batches):
            self.backward(None, self.forward(0, None), None)

    def step(self):
        places, args = self.places, self.args
        self.buffer.zero_()
        if places.pipeline == 1:
            self.whole()
        elif args.interleave > 1:
            self.interleaved()
        else:
            self.plain()
        if args.sequence_parallel:
            norms = [p.sum for chunk in self.chunks for name, p in chunk.named_parameters() if "norm" in name]
            flat = torch.cat([g.reshape(-1) for g in norms])
            dist.all_reduce(flat, group=places.tensor_group)
            torch._foreach_copy_([g.view(-1) for g in norms], list(flat.split([g.numel() for g in norms])))
        if places.data > 1:
            self.buffer.div_(places.data)
            dist.all_reduce(self.buffer, group=places.data_group)
        if places.pipeline > 1 and self.words:
            dist.all_reduce(self.words[0].sum, group=places.ends_group)
        self.update()

    def update(self):
        for p, m in zip(self.parameters, self.masters):
            m.grad = p.sum.float()
        gradients = [m.grad for m in self.masters]
        found = torch.zeros(1, device=self.device)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.full((1,), 1 / 4096, device=self.device))
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.places.model_group)
        found.item()
        square = torch.stack(torch._foreach_norm(gradients)).square().sum()
        dist.all_reduce(square, group=self.places.model_group)
        torch._foreach_mul_(gradients, min(1.0, 1.0 / (square.item() ** 0.5 + 1.0)))
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.masters)
        for m in self.masters:
            m.grad = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = dict(layers=48, width=6144, heads=64, length=2048, batch=1, vocabulary=51200, tensor=8, pipeline=1, interleave=1, steps=1)
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--recompute", choices=["none", "selective", "full"], default="selective")
    parser.add_argument("--sequence-parallel", action="store_true")
    parser.add_argument("--rounds", action="store_true",
                        help="measure steps of one and of two micro-batches per stage (step@1, step@2) instead")
    args = parser.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    places = Places(args.tensor, args.pipeline)
    with torch.device(device):
        torch.set_default_dtype(torch.half)
        trainer = Trainer(args, places, device)
        torch.set_default_dtype(torch.float)
    wanted = {"step": args.micro_batches}
    if args.rounds:
        wanted = {"step@1": args.pipeline, "step@2": 2 * args.pipeline}
    with torch.autograd.set_multithreading_enabled(False):
        args.micro_batches = min(2, args.pipeline) if args.interleave == 1 else args.pipeline  # enough to be warm
        measure(trainer.step, steps=0, warmup=1)
        for name, args.micro_batches in wanted.items():
            measure(trainer.step, name=name, steps=args.steps, warmup=0)
    finish()


if __name__ == "__main__":
    main()
