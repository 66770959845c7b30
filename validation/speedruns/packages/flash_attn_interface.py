"""FlashAttention 3 under the name that the scripts import, from xformers' wheel, which carries its compiled kernels.

Only what the scripts call: `flash_attn_varlen_func`. The kernels are those of the wheel; this file hands the arguments
on and tells torch.compile the shapes, as the package of that name does.
"""

from __future__ import annotations

import importlib.util
import pathlib

import torch


def load_kernels() -> None:
    """Loads only the library with the kernels: the rest of xformers has other needs."""
    found = importlib.util.find_spec("xformers")
    if found is None or not found.submodule_search_locations:
        raise ImportError("flash_attn_interface: xformers, whose wheel carries FlashAttention 3, is missing")
    torch.ops.load_library(str(pathlib.Path(found.submodule_search_locations[0]) / "flash_attn_3" / "_C.so"))


load_kernels()


def adjacent(x: torch.Tensor) -> torch.Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


@torch.library.custom_op("speedruns_flash3::forward", mutates_args=(), device_types="cuda")
def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int,
            max_k: int, scale: float, causal: bool, left: int, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse, *_ = torch.ops.flash_attn_3.fwd(
        adjacent(q), adjacent(k), adjacent(v), cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, max_seqlen_q=max_q,
        max_seqlen_k=max_k, softmax_scale=scale, is_causal=causal, window_size_left=left, window_size_right=right,
        num_splits=1)
    return out, lse


@forward.register_fake
def _(q, k, v, cu_q, cu_k, max_q, max_k, scale, causal, left, right):
    return (q.new_empty((*q.shape[:-1], v.shape[-1])),
            q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32))


@torch.library.custom_op("speedruns_flash3::backward", mutates_args=(), device_types="cuda")
def backward(grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
             lse: torch.Tensor, cu_q: torch.Tensor, cu_k: torch.Tensor, max_q: int, max_k: int, scale: float,
             causal: bool, left: int, right: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = adjacent(q), adjacent(k), adjacent(v)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    torch.ops.flash_attn_3.bwd(
        adjacent(grad), q, k, v, out, lse, dq, dk, dv, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, max_seqlen_q=max_q,
        max_seqlen_k=max_k, softmax_scale=scale, is_causal=causal, window_size_left=left, window_size_right=right)
    return dq, dk, dv


@backward.register_fake
def _(grad, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, scale, causal, left, right):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def keep(ctx, inputs, output) -> None:
    q, k, v, cu_q, cu_k, *ctx.rest = inputs
    ctx.save_for_backward(q, k, v, *output, cu_q, cu_k)


def differentiate(ctx, grad, _):
    q, k, v, out, lse, cu_q, cu_k = ctx.saved_tensors
    return *backward(grad, q, k, v, out, lse, cu_q, cu_k, *ctx.rest), *[None] * 8


forward.register_autograd(differentiate, setup_context=keep)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=None,
                           causal=False, window_size=(-1, -1)):
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    return forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, causal, *window_size)[0]
