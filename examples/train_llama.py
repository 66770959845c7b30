"""Trains a Llama-style model on random tokens: FSDP2 or DDP, optional tensor parallelism, recomputation, micro-batches.

An ordinary PyTorch script whose flags are what one would tune. Nothing in it knows about Maya.

    torchrun --nproc-per-node 8 examples/train_llama.py --shard full --batch 2 --recompute
    torchrun --nproc-per-node 8 examples/train_llama.py --layers 32 --width 4096 --tp 2
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.head = width // heads
        hidden = -(-8 * width // 3 // 256) * 256
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        n = self.norm1(x)
        # With tensor parallelism a rank has some of the heads: their number follows from the size.
        q, k, v = (part(n).view(batch, length, -1, self.head).transpose(1, 2) for part in (self.q, self.k, self.v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, -1))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.recompute = args.recompute
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        self.blocks = nn.ModuleList(Block(args.width, args.heads) for _ in range(args.layers))
        self.norm = nn.RMSNorm(args.width)
        self.head = nn.Linear(args.width, args.vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--batch", type=int, default=1, help="sequences of a micro-batch")
    parser.add_argument("--global-batch", type=int, help="sequences of a step; default: one micro-batch per data rank")
    parser.add_argument("--shard", choices=["none", "grads", "full"], default="full",
                        help="none: DDP; grads: FSDP that keeps the parameters after the forward pass; full: FSDP")
    parser.add_argument("--tp", type=int, default=1, help="ranks that share each layer")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def parallelize(model, args, mesh):
    if args.tp > 1:
        plan = {name: ColwiseParallel() for name in ("q", "k", "v", "gate", "up")} | {
            name: RowwiseParallel() for name in ("out", "down")
        }
        for block in model.blocks:
            parallelize_module(block, mesh["tp"], plan)
    if args.shard == "none":
        if args.tp > 1:
            raise SystemExit("--shard none has no tensor parallelism; use --shard grads")
        return nn.parallel.DistributedDataParallel(model.bfloat16(), gradient_as_bucket_view=True)
    options = {"mesh": mesh["dp"], "reshard_after_forward": args.shard == "full",
               "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def main():
    args = parse()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    mesh = init_device_mesh("cuda", (world // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    data_ranks = world // args.tp
    micro_batches = 1 if not args.global_batch else args.global_batch // (data_ranks * args.batch)

    with torch.device("meta"):
        model = Llama(args)
    if args.shard == "none":
        model = model.to_empty(device="cuda")
    model = parallelize(model, args, mesh)
    if args.shard != "none":
        model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for step in range(args.steps):
        for i in range(micro_batches):
            tokens = torch.randint(args.vocabulary, (args.batch, args.length + 1)).cuda()
            last = i == micro_batches - 1
            if args.shard == "none":
                model.require_backward_grad_sync = last
            else:
                model.set_requires_gradient_sync(last)
            loss = model(tokens[:, :-1], tokens[:, 1:]) / micro_batches
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    if dist.get_rank() == 0:
        print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.2f} B parameters of rank 0, "
              f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at the peak")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
