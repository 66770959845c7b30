"""The `maya` program as the search sees it: what it can do, what it knows of a cluster."""

from __future__ import annotations

import functools
import json
import subprocess

from maya import MayaError, program


class Program:
    def __init__(self, path: str | None = None):
        self.path = path or program()

    @functools.cached_property
    def run_options(self) -> str:
        return self._text("run", "--help")

    def can(self, option: str) -> bool:
        """Whether `maya run` knows an option."""
        return option in self.run_options

    def _text(self, *words: str) -> str:
        try:
            return subprocess.run([self.path, *words], capture_output=True, text=True, timeout=60).stdout
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise MayaError(f"cannot start {self.path}: {problem}") from None

    @functools.lru_cache(maxsize=1000)
    def cluster(self, spec: str) -> dict:
        """Figures of a cluster: gpu, gpus_per_node, nodes, usd_per_gpu_hour. Raises MayaError if the name is wrong."""
        done = subprocess.run([self.path, "clusters", spec, "--json"], capture_output=True, text=True, timeout=60)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise MayaError(lines[-1].removeprefix("maya: ") if lines else f"unknown cluster {spec}")
        return json.loads(done.stdout)

    @functools.lru_cache(maxsize=1)
    def gpus(self) -> dict[str, dict]:
        return {gpu["name"]: gpu for gpu in json.loads(self._text("gpus", "--json") or "[]")}

    def gpu_of(self, spec: str) -> str:
        return self.cluster(spec)["gpu"]
