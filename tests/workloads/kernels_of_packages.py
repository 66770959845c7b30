"""Packages that bring their own kernels: one small training loop each, through the package's documented front door."""

from __future__ import annotations

import argparse

import torch
from common import Job, Transformer, finish, loss_of, start, tokens_for


def bitsandbytes(job: Job, args) -> None:
    import bitsandbytes as bnb
    model = Transformer(layers=2).to(job.device)
    kinds = {"adam8bit": bnb.optim.AdamW8bit, "paged": bnb.optim.PagedAdamW8bit, "adam32": bnb.optim.AdamW32bit,
             "lion8bit": bnb.optim.Lion8bit}
    loop(job, model, kinds[args.variant or "adam8bit"](model.parameters(), lr=1e-4))


def qlora(job: Job, args) -> None:
    """4-bit frozen weights, a small adapter on top of each."""
    import bitsandbytes as bnb
    model = Transformer(layers=2)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "head":
                quantized = bnb.nn.Linear4bit(child.in_features, child.out_features, bias=False,
                                              compute_dtype=torch.bfloat16, quant_type="nf4")
                quantized.weight = bnb.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4")
                setattr(module, name, quantized)
    model = model.to(job.device)
    loop(job, model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4))


def float8(job: Job, args) -> None:
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    model = Transformer(layers=2).to(job.device).bfloat16()
    convert_to_float8_training(model, config=Float8LinearConfig.from_recipe_name(args.variant or "tensorwise"),
                               module_filter_fn=lambda module, name: "head" not in name)
    if args.compile:
        model = torch.compile(model)
    loop(job, model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def adam_low_bit(job: Job, args) -> None:
    from torchao.optim import AdamW8bit
    model = Transformer(layers=2).to(job.device)
    loop(job, model, AdamW8bit(model.parameters(), lr=1e-4))


def liger(job: Job, args) -> None:
    from liger_kernel.transformers import apply_liger_kernel_to_llama
    from transformers import LlamaConfig, LlamaForCausalLM
    apply_liger_kernel_to_llama()
    model = (
        LlamaForCausalLM(
            LlamaConfig(
                hidden_size=512,
                intermediate_size=1376,
                num_hidden_layers=2,
                num_attention_heads=8,
                num_key_value_heads=4,
                vocab_size=8192,
            )
        )
        .to(job.device)
        .bfloat16()
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(4):
        tokens, _ = tokens_for(job, 4, 512, 8192)
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def xformers(job: Job, args) -> None:
    import xformers.ops as ops

    class Block(torch.nn.Module):
        def __init__(self, width: int = 512):
            super().__init__()
            self.norm, self.qkv, self.out = (
                torch.nn.LayerNorm(width),
                torch.nn.Linear(width, 3 * width),
                torch.nn.Linear(width, width),
            )
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            b, n, w = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, n, 3, w // 64, 64).unbind(2)
            x = x + self.out(
                ops.memory_efficient_attention(q, k, v, attn_bias=ops.LowerTriangularMask()).reshape(b, n, w)
            )
            return x + self.down(torch.nn.functional.gelu(self.up(x)))

    model = torch.nn.Sequential(*(Block() for _ in range(2))).to(job.device).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(4):
        model(torch.randn(4, 512, 512, device=job.device, dtype=torch.bfloat16)).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def loop(job: Job, model, optimizer, steps: int = 4) -> None:
    for _ in range(steps):
        tokens, targets = tokens_for(job, 4, 512, 8192)
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(tokens), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


PACKAGES = {f.__name__: f for f in (bitsandbytes, qlora, float8, adam_low_bit, liger, xformers)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--variant")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    job = start()
    PACKAGES[args.package](job, args)
    finish(job)
