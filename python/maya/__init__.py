"""Maya's Python side: where the program and its files are, and a way to start it.

The work is done by the `maya` program; `maya.run(...)` and friends are there for scripts that would
otherwise spell out subprocess calls.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Sequence

__version__ = "0.1.0"
__all__ = ["program", "run", "predict", "search", "MayaError"]

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


def _call(arguments: Sequence[str]) -> str:
    done = subprocess.run([program(), *arguments], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise MayaError(lines[-1] if lines else f"maya ended with code {done.returncode}")
    return done.stdout


def run(command: Sequence[str], cluster: str, out: str | os.PathLike[str], **environment: str) -> int:
    """Runs a training command on the emulated cluster, output passing through; gives its exit code."""
    arguments = [program(), "run", "--cluster", cluster, "--out", os.fspath(out), "--", *command]
    return subprocess.run(arguments, env={**os.environ, **environment}).returncode


def predict(run_directory: str | os.PathLike[str], cluster: str | None = None, **settings: Any) -> dict:
    """Simulates a recording again, on another cluster or with other settings; gives prediction.json."""
    arguments = ["predict", os.fspath(run_directory), "--json"]
    if cluster:
        arguments += ["--cluster", cluster]
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    return json.loads(_call(arguments))


def __getattr__(name: str) -> Any:
    """`maya.search(...)`: loaded when it is asked for, because it brings Optuna."""
    if name == "search":
        import importlib

        return importlib.import_module("maya.search")
    raise AttributeError(f"module 'maya' has no attribute {name!r}")
