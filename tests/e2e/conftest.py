"""What every end-to-end test needs: the program as a user has it, and a way to run commands under it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
MAYA = os.environ.get("MAYA_PROGRAM", str(BIN / "maya"))


@dataclass
class Done:
    code: int
    stdout: str
    stderr: str
    out: pathlib.Path

    @property
    def recordings(self) -> list[pathlib.Path]:
        return sorted(self.out.glob("rank-*.maya"))

    @property
    def prediction(self) -> dict:
        return json.loads((self.out / "prediction.json").read_text())

    @property
    def complaints(self) -> list[str]:
        """Lines of Maya itself on stderr, without the one that says what it starts."""
        return [l for l in self.stderr.splitlines() if l.startswith("maya: ") and "recording to" not in l]


@pytest.fixture
def maya():
    def call(*words: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [MAYA, *words], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
        )

    return call


@pytest.fixture
def run(tmp_path):
    """run("python", "x.py", cluster="dgx-a100") under `maya run`, in a directory of its own."""

    def call(*command: str, cluster: str = "dgx-h100", out: pathlib.Path | None = None, options: tuple[str, ...] = (),
             timeout: float = 300, **environment: str) -> Done:
        out = out or tmp_path / "run"
        words = [str(BIN / command[0]) if (BIN / command[0]).exists() else command[0], *command[1:]]
        done = subprocess.run(
            [MAYA, "run", "--cluster", cluster, "--out", str(out), *options, "--", *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        return Done(done.returncode, done.stdout, done.stderr, out)

    return call
