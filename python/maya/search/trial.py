"""One trial: `maya run` in a directory of its own, or `maya predict` over a recording that is already there."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from maya import MayaError
from maya.search import outcome, processes
from maya.search.plan import Plan
from maya.search.program import Program


@dataclass(frozen=True)
class Task:
    """What an engine needs to run a trial, on this machine or another."""

    key: str
    words: tuple[str, ...]  # the whole command line, `maya run …`
    environment: Mapping[str, str]  # variables that are added to those of the search
    files: Mapping[str, str]
    folder: str  # absolute
    directory: str  # where the command runs
    timeout_s: float
    memory_gib: float
    strict: bool = False  # not a byte more than the GPU's memory
    again: bool = False  # only simulates an existing recording again: seconds, little memory
    served: bool = False  # `maya serve-bench`: counts by what a client saw
    tags: Mapping[str, object] = field(default_factory=dict)


def run_task(program: Program, plan: Plan, folder: pathlib.Path, directory: str, timeout_s: float, memory_gib: float,
             stop_after: str, ranks: str, tags: Mapping[str, object], strict: bool = False,
             expected: Sequence[int] = ()) -> Task:
    """`maya run` of a plan below `folder`."""
    words = [program.path, "run", "--cluster", plan.cluster, "--out", str(folder / "run"), "--quiet"]
    command = plan.command(folder / "files")
    words += ["--ranks", ranks]  # works with any launcher, and for a command of one process
    if ranks == "unique" and len(expected) > 1 and program.can("--expect-ranks"):
        words += ["--expect-ranks", ",".join(map(str, expected))]
    if stop_after != "never" and program.can("--stop-after"):
        words += ["--stop-after", stop_after]
    for option in ("--no-report", "--no-timeline", "--no-probe"):
        if program.can(option):
            words.append(option)
    if not strict and program.can("--memory-slack"):
        words += ["--memory-slack", f"{outcome.MEMORY_ERROR:g}"]
    for key, value in plan.settings:
        words += ["--set", f"{key}={value}"]
    words += ["--", *command]
    return Task(plan.key(), tuple(words), dict(plan.environment), dict(plan.files), str(folder), directory, timeout_s,
                memory_gib, strict, tags=tags)


def again_task(program: Program, plan: Plan, recording: pathlib.Path, folder: pathlib.Path, directory: str,
               tags: Mapping[str, object]) -> Task:
    """`maya predict` of another trial's recording for this plan's cluster."""
    words = [program.path, "predict", str(recording), "--cluster", plan.cluster, "--out",
             str(folder / "run" / "prediction.json")]
    for key, value in plan.settings:
        words += ["--set", f"{key}={value}"]
    return Task(plan.key(), tuple(words), {}, {}, str(folder), directory, 120.0, 0.5, again=True, tags=tags)


def serving_task(program: Program, plan: Plan, folder: pathlib.Path, directory: str, timeout_s: float,
                 memory_gib: float, ranks: str, tags: Mapping[str, object]) -> Task:
    """`maya serve-bench` of a plan below `folder`."""
    of_run = [option for option in ("--no-report", "--no-timeline", "--quiet") if program.can(option)]
    for key, value in plan.settings:
        of_run += ["--set", f"{key}={value}"]
    if ranks != "all":
        of_run += ["--ranks", ranks]
    words = [program.path, "serve-bench", "--cluster", plan.cluster, "--out", str(folder / "run"), *plan.serving,
             *(f"--run-option={word}" for word in of_run), "--", *plan.command(folder / "files")]
    return Task(plan.key(), tuple(words), dict(plan.environment), dict(plan.files), str(folder), directory, timeout_s,
                memory_gib, served=True, tags=tags)


class Running:
    """A trial under way."""

    def __init__(self, task: Task, environment: Mapping[str, str] = {}):
        self.task, self.mark = task, uuid.uuid4().hex
        self.folder = pathlib.Path(task.folder)
        self.began = time.monotonic()
        self.peak_gib, self.seen = 0.0, set()
        shutil.rmtree(self.folder, ignore_errors=True)  # left by a trial that was interrupted
        (self.folder / "run").mkdir(parents=True) if task.again else self.folder.mkdir(parents=True)
        if task.files:
            (self.folder / "files").mkdir()
            for name, content in task.files.items():
                (self.folder / "files" / name).write_text(content)
        (self.folder / "command.json").write_text(
            json.dumps({"words": task.words, "environment": dict(task.environment)})
        )
        try:
            self.process = processes.start(task.words, {**os.environ, **environment, **task.environment}, self.mark,
                                           self.folder / "output.txt", task.directory)
        except OSError as problem:
            raise MayaError(f"cannot start {task.words[0]}: {problem}") from None

    def sample(self) -> None:
        """Looks at the memory that the trial holds now."""
        pids = processes.of_trial(self.process.pid, self.mark)
        self.seen.update(pids)
        self.peak_gib = max(self.peak_gib, processes.memory_gib(pids))

    def poll(self) -> outcome.Outcome | None:
        code = self.process.poll()
        seconds = time.monotonic() - self.began
        if code is None and seconds < self.task.timeout_s:
            return None
        if code is None:
            # Before it is ended, since programs print what ended them.
            detail = f"still running after {self.task.timeout_s:g} s: {self._last_line()}"
            kind = outcome.TIMEOUT
            self.stop()
            return self._outcome(kind, detail, None, seconds)
        self.stop()  # ends remaining descendants
        prediction = outcome.read_prediction(self.folder / "run")
        judge = outcome.judge_served if self.task.served else outcome.judge
        kind, detail = judge(code, self._output(), prediction)
        for name in ("report.html", "timeline.pftrace"):  # large; `maya predict` can create them again
            (self.folder / "run" / name).unlink(missing_ok=True)
        if self.task.served:  # what engines compiled: gigabytes over a search
            shutil.rmtree(self.folder / "run" / "caches", ignore_errors=True)
        return self._outcome(kind, detail, prediction, seconds)

    def stop(self) -> None:
        if self.process.poll() is None or processes.of_trial(self.process.pid, self.mark):
            processes.end(self.process, self.mark)
        processes.collect(self.seen, self.process.pid)

    def _outcome(self, kind: str, detail: str, prediction: dict | None, seconds: float) -> outcome.Outcome:
        kept = outcome.summary(prediction) if prediction else None
        return outcome.Outcome(kind, detail, kept, round(seconds, 3), self.folder.name,
                               "simulated again" if self.task.again else "", round(self.peak_gib, 3))

    def _output(self) -> str:
        try:
            with open(self.folder / "output.txt", "rb") as file:
                return file.read(outcome.MAX_READ).decode(errors="replace")
        except OSError:
            return ""

    def _last_line(self) -> str:
        lines = [line for line in self._output().splitlines() if line.strip()]
        return lines[-1].strip()[:200] if lines else "it printed nothing"


def complete(task: Task) -> outcome.Outcome:
    """Runs a trial to its end, in this thread: how workers on other machines do it."""
    running = Running(task)
    try:
        while (ended := running.poll()) is None:
            running.sample()
            try:
                running.process.wait(0.5)
            except subprocess.TimeoutExpired:
                pass
        return ended
    finally:
        running.stop()
