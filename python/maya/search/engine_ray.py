"""Trials on a Ray cluster: each is a task with its memory declared.

A task returns its outcome; nothing else is needed from the node it ran on (recordings stay there). Ray starts a task
again whose node has died, and an outcome arrives once per task: no trial is lost, none is counted twice.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from maya import MayaError
from maya.search import outcome
from maya.search.trial import Task, complete

RETRIES = 5  # of a trial whose node died; a trial that fails is an outcome and is not tried again


def _remote(task: Task) -> outcome.Outcome:
    """What a worker runs. Folders of trials are named anew by process: a lost attempt may still be writing to its
    own."""
    folder = f"{task.folder}-{os.getpid()}"
    words = tuple(word.replace(task.folder, folder) for word in task.words)
    return complete(replace(task, words=words, folder=folder))


class RayEngine:
    name = "ray"

    def __init__(self, address: str = "ray", jobs: int | None = None):
        try:
            import ray
        except ModuleNotFoundError:
            raise MayaError("--engine ray needs Ray: pip install 'maya[ray]'") from None
        self.ray = ray
        if not ray.is_initialized():
            package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH")) if p)
            where: dict[str, Any] = {"address": address} if address.startswith("ray://") else {}
            if not where and os.environ.get("RAY_ADDRESS"):
                where = {"address": "auto"}
            ray.init(
                log_to_driver=False, logging_level="ERROR", runtime_env={"env_vars": {"PYTHONPATH": path}}, **where
            )
            self.ours = True
        else:
            self.ours = False
        self.jobs = jobs
        self.waiting: dict[Any, Task] = {}
        self.remote = ray.remote(_remote)

    @property
    def busy(self) -> int:
        return len(self.waiting)

    def _slots(self) -> int:
        return self.jobs or max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def has_room(self, memory_gib: float) -> bool:
        # Ray decides where a trial runs. A queue twice as long as the cluster keeps its nodes busy.
        return self.busy < (self.jobs or 2 * self._slots())

    def submit(self, task: Task) -> None:
        options = {
            "num_cpus": 1,
            "memory": int(task.memory_gib * 2**30),
            "max_retries": RETRIES,
            "retry_exceptions": False,
        }
        self.waiting[self.remote.options(**options).remote(task)] = task

    def wait(self, timeout: float) -> list[tuple[Task, outcome.Outcome]]:
        if not self.waiting:
            return []
        ready, _ = self.ray.wait(list(self.waiting), num_returns=1, timeout=timeout)
        ended = []
        for reference in ready:
            task = self.waiting.pop(reference)
            try:
                ended.append((task, self.ray.get(reference)))
            except Exception as problem:  # the node died repeatedly, or the worker could not start
                line = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
                ended.append((task, outcome.Outcome(outcome.CRASH, f"Ray: {line[:300]}")))
        return ended

    def stop(self) -> None:
        for reference in self.waiting:
            try:
                self.ray.cancel(reference, force=True)
            except Exception:
                continue
        self.waiting.clear()
        if self.ours:
            self.ray.shutdown()
