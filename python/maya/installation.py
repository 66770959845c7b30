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
