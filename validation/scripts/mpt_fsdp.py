"""MPT with FSDP as llm-foundry trains it: flash attention, LayerNorm without bias, tied embedding, GELU, decoupled AdamW.

    torchrun --nproc-per-node 8 mpt_fsdp.py 1b:2048:14 350m:4096:8:ckpt

A configuration is model:length:micro-batch[:ckpt]. Its steps of one micro-batch are ranges named `configuration@1`, those of two
`configuration@2`: a step of n micro-batches is the first plus n - 1 times their difference.
"""

from __future__ import annotations

import argparse
import functools
import gc

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, measure, start
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import lambda_auto_wrap_policy

MODELS = {  # width, heads, layers
    "125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24), "1b": (2048, 16, 24), "3b": (2560, 20, 32),
    "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 56, 48), "70b": (8192, 64, 80),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def normalize(self, norm, x):  # in low precision, as the package does under autocast
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(x.bfloat16(), norm.normalized_shape, norm.weight.bfloat16(), None, norm.eps)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.normalize(self.norm1, x)).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.normalize(self.norm2, x))))


class MPT(nn.Module):
    def __init__(self, width, heads, layers, length, vocabulary=50368):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


@torch.compile(dynamic=True)  # one for all sizes
def cross_entropy(logits, targets):
    """As the package's fused loss: reads the logits as they are, keeps no copy in FP32."""
    return F.cross_entropy(logits.float(), targets)


class DecoupledAdamW(torch.optim.Optimizer):
    """Composer's: a loop over tensors, weight decay apart from the learning rate."""

    def __init__(self, parameters):
        super().__init__(parameters, dict(lr=2e-4, beta1=0.9, beta2=0.95, eps=1e-8, decay=2e-8))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None or p.numel() == 0:
                    continue
                state = self.state[p]
                if not state:
                    state.update(n=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["n"] += 1
                b1, b2 = group["beta1"], group["beta2"]
                p.mul_(1 - group["decay"])
                state["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                denominator = (state["v"].sqrt() / (1 - b2 ** state["n"]) ** 0.5).add_(group["eps"])
                p.addcdiv_(state["m"], denominator, value=-group["lr"] / (1 - b1 ** state["n"]))


def train(args, spec, world, device):
    name, length, batch, *flags = spec.split(":")
    length, batch = int(length), int(batch)
    width, heads, layers = MODELS[name]
    with torch.device("meta"):
        model = MPT(width, heads, layers, length)
    reduce = torch.bfloat16 if args.pure else torch.float32
    # The blocks are sharded each; the rest, with the tied embedding, at the top.
    model = FSDP(model, auto_wrap_policy=functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, Block)),
                 mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=reduce, buffer_dtype=reduce),
                 sharding_strategy=ShardingStrategy.FULL_SHARD, limit_all_gathers=True, use_orig_params=True, device_id=device,
                 param_init_fn=lambda m: m.to_empty(device=device, recurse=False))
    if "ckpt" in flags:
        apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda m: isinstance(m, Block))
    optimizer = DecoupledAdamW(model.parameters())
    tokens = torch.randint(50368, (batch, length), device=device)
    targets = tokens.roll(-1).view(-1)
    metrics = torch.zeros(2, device=device).unbind()  # cross entropy, perplexity

    def step(micro_batches):
        for i in range(micro_batches):
            # Gradients are reduced after every micro-batch: sharded gradients fit, whole ones would not.
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not args.pure):
                logits = model(tokens)
            flat = logits.view(-1, logits.size(-1))
            loss = cross_entropy(flat, targets) / micro_batches
            loss.backward()
            with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=not args.pure):
                for metric in metrics:  # of every micro-batch, by composer: each computes the loss anew, in FP32
                    metric.add_(F.cross_entropy(flat, targets, reduction="sum"))
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for n in (1, 2):
        measure(lambda: step(n), f"{spec}@{n}", steps=args.steps, warmup=1, synchronize=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configurations", nargs="+")
    parser.add_argument("--pure", action="store_true", help="everything in bf16")
    parser.add_argument("--steps", type=int, default=1)
    args = parser.parse_args()
    rank, world, device = start()
    for spec in args.configurations:
        try:
            train(args, spec, world, device)
        except torch.OutOfMemoryError as error:  # on all ranks alike; the others go on
            print(f"{spec}: {str(error)[:200]}", flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    finish()


if __name__ == "__main__":
    main()
