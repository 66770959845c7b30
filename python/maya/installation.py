"""Where the `maya` program is, and what is raised when it says no."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Sequence

_package = pathlib.Path(__file__).resolve().parent


class MayaError(RuntimeError):
    """`maya` ended with a failure; the message is the line it printed."""


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
    """What `maya ARGUMENTS` prints. Raises MayaError with its last line if it fails."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise MayaError(lines[-1].removeprefix("maya: ") if lines else f"maya ended with code {done.returncode}")
    return done.stdout


def open_libraries() -> bool:
    """Lets `import torch` work in this process where NVIDIA's libraries are missing, by opening Maya's in their place.

    There is no GPU in it (`torch.cuda.is_available()` is false): work is emulated under `maya run` only. Does nothing, and
    returns False, where torch brings NVIDIA's own libraries (the packages nvidia-*) or is loaded already.
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
            continue  # torch says which one it misses
    return opened
