"""`get_kernel` of the package `kernels`, which would download FlashAttention 3: answered from xformers' wheel."""

from __future__ import annotations

import types


def get_kernel(repository: str, revision: str | None = None, version: int | None = None) -> types.SimpleNamespace:
    if "flash-att" not in repository:
        raise ImportError(f"kernels: only FlashAttention 3 is here, not {repository}")
    import flash_attn_interface

    return types.SimpleNamespace(flash_attn_interface=flash_attn_interface)
