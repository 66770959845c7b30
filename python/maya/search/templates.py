"""`maya search --init KIND`: commented spaces to begin with (init/KIND.toml)."""

from __future__ import annotations

import pathlib

KINDS = ("plain", "accelerate", "deepspeed", "megatron", "torchtitan", "serving")


def text(kind: str) -> str:
    return (pathlib.Path(__file__).parent / "init" / f"{kind}.toml").read_text()
