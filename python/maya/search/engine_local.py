"""Trials on this machine, as many at a time as its cores and memory allow. One thread: it sleeps until a trial ends."""

from __future__ import annotations

import os
import select
import time

from maya.search import outcome, processes
from maya.search.starts import Starts
from maya.search.trial import Running, Task

SAMPLE_S = 0.5
RESERVE_GIB = 0.5  # kept free for everything else on the machine


class LocalEngine:
    name = "local"

    def __init__(self, jobs: int | None = None):
        self.jobs = jobs or processes.cores()
        self.running: list[tuple[Running, int]] = []  # with its pidfd
        processes.adopt_orphans()
        self.starts = Starts()

    def has_room(self, memory_gib: float) -> bool:
        """Whether a trial that needs so much memory can start now."""
        if not self.running:
            return True
        if len(self.running) >= self.jobs:
            return False
        # Memory that running trials have not used yet is reserved for them.
        promised = sum(max(0.0, running.task.memory_gib - running.peak_gib) for running, _ in self.running)
        return processes.available_gib() - promised - RESERVE_GIB >= memory_gib

    def submit(self, task: Task) -> None:
        running = Running(task, self.starts.environment)
        self.running.append((running, os.pidfd_open(running.process.pid)))

    @property
    def busy(self) -> int:
        return len(self.running)

    def wait(self, timeout: float) -> list[tuple[Task, outcome.Outcome]]:
        """What has ended; at most `timeout` seconds are spent waiting for the first."""
        deadline = time.monotonic() + timeout
        while True:
            ended = []
            for entry in list(self.running):
                running, handle = entry
                result = running.poll()
                if result is not None:
                    os.close(handle)
                    self.running.remove(entry)
                    ended.append((running.task, result))
            left = deadline - time.monotonic()
            if ended or left <= 0 or not self.running:
                return ended
            for running, _ in self.running:
                running.sample()
            watch = select.poll()
            for _, handle in self.running:
                watch.register(handle, select.POLLIN)
            watch.poll(1000 * max(0.0, min(SAMPLE_S, left)))

    def stop(self) -> None:
        """Ends every trial, with all of its processes."""
        for running, handle in self.running:
            running.stop()
            os.close(handle)
        self.running.clear()
