"""What every end-to-end test needs: the program as a user has it, and a way to run commands under it."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
MAYA = os.environ.get("MAYA_PROGRAM", str(BIN / "maya"))


def finished(words: list[str], timeout: float, **options) -> subprocess.CompletedProcess:
    """Runs a command; if it takes too long, ends it and all it has started before the test fails."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            end_session(process.pid)
            process.communicate()
            raise
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def end_session(leader: int) -> None:
    """Kills every process of a session: `maya run` gives commands a process group of their own."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


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
        """Lines that Maya wrote to stderr, without the one about what it starts."""
        return [l for l in self.stderr.splitlines() if l.startswith("maya: ") and "recording to" not in l]


@pytest.fixture
def maya():
    def call(*words: str, **environment: str) -> subprocess.CompletedProcess:
        return finished([MAYA, *words], timeout=300, env={**os.environ, **environment})

    return call


@pytest.fixture
def run(tmp_path):
    """run("python", "x.py", cluster="dgx-a100") under `maya run`, in a directory of its own."""

    def call(*command: str, cluster: str = "dgx-h100", out: pathlib.Path | None = None, options: tuple[str, ...] = (),
             timeout: float = 300, **environment: str) -> Done:
        out = out or tmp_path / "run"
        words = [str(BIN / command[0]) if (BIN / command[0]).exists() else command[0], *command[1:]]
        done = finished(
            [MAYA, "run", "--cluster", cluster, "--out", str(out), *options, "--", *words],
            timeout=timeout,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        return Done(done.returncode, done.stdout, done.stderr, out)

    return call
