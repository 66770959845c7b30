"""Finds the `maya` program, and defines the exception for its failures."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Sequence

_package = pathlib.Path(__file__).resolve().parent


class MayaError(RuntimeError):
    """`maya` failed. The message is the line that it printed."""


def program() -> str:
    """Path of the `maya` program: the installed one, else that of the build tree."""
    for candidate in (
        os.environ.get("MAYA_PROGRAM"),
        _package / "bin" / "maya",
        _package.parent.parent / "build" / "bin" / "maya",
    ):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise MayaError("the maya program is not built; run `make build` or `pip install .`")


def call(arguments: Sequence[str]) -> str:
    """The output of `maya ARGUMENTS`. Raises MayaError with its last line if it fails."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise MayaError(lines[-1].removeprefix("maya: ") if lines else f"maya ended with code {done.returncode}")
    return done.stdout


def open_libraries() -> bool:
    """Makes `import torch` work in this process without NVIDIA's libraries, by loading Maya's libraries instead.

    There is no GPU in it (`torch.cuda.is_available()` is false): work is emulated under `maya run` only. Does nothing,
    and returns False, where torch brings NVIDIA's own libraries (the packages nvidia-*) or is loaded already.
    """
    import ctypes
    import importlib.util
    import sys

    if "torch" in sys.modules or importlib.util.find_spec("nvidia") is not None:
        return False
    folder = pathlib.Path(program()).resolve().parent.parent / "lib" / "maya"
    opened = False
    for path in sorted(folder.glob("lib*.so.*")):
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            opened = True
        except OSError:
            continue  # the error of torch names the missing library
    return opened
