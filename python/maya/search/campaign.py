"""The search itself: takes configurations from a strategy, skips what need not run, runs the rest, stores every
outcome."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Mapping, Protocol

from maya import MayaError
from maya.search import compare, enumeration, fidelity, outcome, ranking, trial
from maya.search import plan as plans
from maya.search.interrupt import Interrupt
from maya.search.layouts import Layouts
from maya.search.objective import NoValue, peak_memory
from maya.search.program import Program
from maya.search.prune import Pruner
from maya.search.space import Space
from maya.search.store import Record, Store

FIRST_FAILURES = 4  # if this many trials fail and none succeeds, the command is wrong, not the configuration
MOST_CONFIRMED = 5  # number of extrapolated best configurations that finally run at full depth
GUESSED_GIB = 1.5  # assumed memory of a trial until one was measured


class EveryTrialFails(MayaError):
    """The command fails with every configuration. The message shows its first error."""


@dataclass
class Candidate:
    """A configuration to try."""

    values: enumeration.Values
    asked: Any = None  # the sampler's trial
    baseline: bool = False
    skip: str = ""  # why it need not run; it is only stored
    full: bool = False  # at full depth, regardless of [fidelity]
    part: "tuple[Candidate, fidelity.Depths, int] | None" = None  # one of the depths of another candidate


class Strategy(Protocol):
    """Proposes configurations; learns from what became of them."""

    total: int | None  # number of configurations, if known

    def next(self) -> Candidate | None: ...
    def tell(self, record: Record) -> None: ...


class Engine(Protocol):
    name: str
    busy: int

    def has_room(self, memory_gib: float) -> bool: ...
    def submit(self, task: trial.Task) -> None: ...
    def wait(self, timeout: float) -> list[tuple[trial.Task, outcome.Outcome]]: ...
    def stop(self) -> None: ...


@dataclass
class Budget:
    trials: int | None = None  # limit on trials that run; skipped and reused ones do not count
    seconds: float | None = None


@dataclass
class Progress:
    """What a view shows while the search is under way."""

    began: float = field(default_factory=time.monotonic)
    kinds: Counter = field(default_factory=Counter)
    running: int = 0
    ran: int = 0  # trials that started a process in this session
    trial_seconds: float = 0.0
    own_seconds: float = 0.0  # this program's CPU time
    total: int | None = None
    note: str = ""


class Campaign:
    def __init__(self, space: Space, store: Store, engine: Engine, program: Program, strategy: Strategy, pruner: Pruner,
                 budget: Budget, directory: str, view: Any):
        self.space, self.store, self.engine, self.program = space, store, engine, program
        self.strategy, self.pruner, self.budget, self.view = strategy, pruner, budget, view
        self.directory = directory
        self.progress = Progress(total=strategy.total)
        self.waiting: dict[str, list[tuple[Candidate, plans.Plan]]] = {}  # by key of the trial they wait for
        self.running: dict[str, tuple[Candidate, plans.Plan]] = {}
        self.recordings: dict[str, str] = {}  # recording key → folder of the trial that has it
        self.memory_gib = space.trial.memory_gib or GUESSED_GIB
        self.failures: list[Record] = []
        self.tree = enumeration.Tree(space)
        self.queue: list[Candidate] = []  # before anything the strategy proposes
        self.confirmed: set[str] = set()  # keys whose full run was tried
        self.some_trial_worked = False
        self.layouts = Layouts(space.parameters)
        self.beyond: dict[str, outcome.Outcome] = {}  # by key: took a little too much memory, runs again without that

    def run(self) -> None:
        for record in self.store.records:
            self._learn(record)
            self.layouts.learn(record.values, record.prediction)
            self._find_recording(record)
        self.view.begin(self)
        with Interrupt() as interrupt:
            self._work(interrupt)

    def _work(self, interrupt: Interrupt) -> None:
        try:
            while True:
                exhausted = self._fill()
                interrupt.check()
                if self.engine.busy == 0 and exhausted and (self._spent() or not self._confirm()):
                    break
                for task, result in self.engine.wait(0.5):
                    self._finished(task, result)
                self._report()
        finally:
            self.engine.stop()
            self._report()
            self.view.end(self)

    # --- starting trials

    def _fill(self) -> bool:
        """Starts what there is room for; true when nothing more will come (for now)."""
        while self.engine.has_room(self.memory_gib):
            if self._spent():
                return True
            candidate = self.queue.pop(0) if self.queue else self.strategy.next()
            if candidate is None:
                return True
            self._start(candidate)
        return False

    def _confirm(self) -> bool:
        """Queues the best configuration at its full depth, if so far it is only extrapolated."""
        best = ranking.ranked(self.space, self.store.records)[:1]
        if not best or not best[0].checks.get("extrapolated") or len(self.confirmed) >= MOST_CONFIRMED:
            return False
        if best[0].key in self.confirmed:
            return False  # its full run failed, so only the extrapolation is known
        self.confirmed.add(best[0].key)
        self.queue.append(Candidate(self.tree.complete(best[0].values), baseline=best[0].baseline, full=True))
        return True

    def _spent(self) -> bool:
        if self.budget.trials is not None and self.progress.ran >= self.budget.trials:
            return True
        return self.budget.seconds is not None and time.monotonic() - self.progress.began >= self.budget.seconds

    def _start(self, candidate: Candidate) -> None:
        if candidate.skip:
            self._store(candidate, "", outcome.Outcome(outcome.SKIPPED, candidate.skip))
            return
        try:
            plan = plans.make(self.space, candidate.values, self._gpu_of)
            reason = "" if candidate.part or candidate.full else self._over_limit_before(plan) or (
                "" if candidate.baseline else self.pruner.reason(candidate.values))
            depths = (
                None if reason or candidate.part or candidate.full else fidelity.depths(self.space, candidate.values)
            )
        except MayaError as problem:
            self._store(candidate, "", outcome.Outcome(outcome.USAGE, str(problem)))
            return
        if reason:
            kind = outcome.OVER_LIMIT if reason.startswith("limit:") else outcome.SKIPPED
            self._store(candidate, "", outcome.Outcome(kind, reason.removeprefix("limit:").strip()))
            return
        key = plan.key()
        if key in self.store.known and not candidate.full:
            self._store_again(candidate, plan, self.store.known[key])
            return
        if depths:
            # The larger depth first, because it shows whether the configuration fits into memory.
            self.queue[:0] = [Candidate(depths.values[i], part=(candidate, depths, i)) for i in (1, 0)]
            return
        if key in self.running:
            self.waiting.setdefault(key, []).append((candidate, plan))
            return
        recording = plan.recording_key()
        for other, (_, running) in self.running.items():
            if running.recording_key() == recording:  # its recording can be used
                self.waiting.setdefault(other, []).append((candidate, plan))
                return
        self._submit(candidate, plan)

    def _submit(self, candidate: Candidate, plan: plans.Plan, strict: bool = False) -> None:
        key, recording = plan.key(), plan.recording_key()
        folder = self.store.trial_folder(key).absolute()
        limits = self.space.trial
        if recording in self.recordings:
            run = self.store.trial_folder(self.recordings[recording]).absolute() / "run"
            task = trial.again_task(self.program, plan, run, folder, self.directory, {})
        elif plan.serving:
            task = trial.serving_task(self.program, plan, folder, self.directory, limits.timeout_s, self.memory_gib,
                                      limits.ranks, {})
        else:
            task = trial.run_task(self.program, plan, folder, self.directory, limits.timeout_s, self.memory_gib,
                                  limits.stop_after, limits.ranks, {}, strict,
                                  self.layouts.expected(candidate.values))
        self.running[key] = (candidate, plan)
        self.progress.ran += not strict
        self.engine.submit(task)

    def _gpu_of(self, cluster: str) -> str:
        return self.program.gpu_of(cluster)

    def _over_limit_before(self, plan: plans.Plan) -> str:
        limits = self.space.limits
        if self.space.cluster_nodes is None or (limits.gpus is None and limits.usd_per_hour is None):
            return ""
        facts = self.program.cluster(plan.cluster)
        gpus = facts["gpus_per_node"] * facts["nodes"]
        if limits.gpus is not None and gpus > limits.gpus:
            return f"limit: {gpus} GPUs; at most {limits.gpus}"
        price = facts.get("usd_per_gpu_hour") or 0
        if limits.usd_per_hour is not None and price * gpus > limits.usd_per_hour:
            return f"limit: ${price * gpus:,.2f} an hour; at most ${limits.usd_per_hour:,.2f}"
        return ""

    # --- what became of them

    def _finished(self, task: trial.Task, result: outcome.Outcome) -> None:
        candidate, plan = self.running.pop(task.key)
        self.progress.trial_seconds += result.seconds
        if task.strict:
            result = outcome.settled(self.beyond.pop(task.key), result)
        elif outcome.goes_beyond(result) and not task.again:
            self.beyond[task.key] = result
            self._submit(candidate, plan, strict=True)
            return
        if result.prediction:
            result.prediction["recording"] = plan.recording_key()
        self.layouts.learn(candidate.values, result.prediction)
        if result.memory_gib and not task.again and self.space.trial.memory_gib is None:
            measured = result.memory_gib * 1.25
            self.memory_gib = measured if self.memory_gib == GUESSED_GIB else max(self.memory_gib, measured)
        if candidate.part:
            self._finished_part(*candidate.part, result)
            return
        record = self._store(candidate, task.key, result)
        if not task.again and record.ok and self._recorded(record):
            self.recordings[plan.recording_key()] = record.folder
        self._check_failures(record)
        for other, other_plan in self.waiting.pop(task.key, []):
            if other_plan.key() == task.key:
                self._store_again(other, other_plan, record)
            elif record.ok:
                self._submit(other, other_plan)
            else:
                self._start(other)

    def _finished_part(
        self, candidate: Candidate, depths: fidelity.Depths, which: int, result: outcome.Outcome
    ) -> None:
        depths.done[which] = result
        if result.kind not in fidelity.USABLE:
            self.queue = [c for c in self.queue if not (c.part and c.part[0] is candidate)]
            if len(depths.done) == 2 and depths.done[1 - which].kind not in fidelity.USABLE:
                return  # stored when the first of them failed
        elif len(depths.done) < 2:
            return
        elif depths.done[1 - which].kind not in fidelity.USABLE:
            return
        plan = plans.make(self.space, candidate.values, self._gpu_of)
        self._check_failures(self._store(candidate, plan.key(), fidelity.combine(depths)))

    def _store_again(self, candidate: Candidate, plan: plans.Plan, known: Record) -> None:
        result = outcome.Outcome(known.kind, known.detail, dict(known.prediction) or None, 0.0, known.folder,
                                 "same command")
        self._store(candidate, plan.key(), result)

    def _store(self, candidate: Candidate, key: str, result: outcome.Outcome) -> Record:
        values = {name: candidate.values.get(name) for name in self.space.parameters}
        kind, detail, goals = result.kind, result.detail, []
        if kind in (outcome.OK, outcome.MAY_FIT) and result.prediction:
            try:
                wrong = self.space.objective.check_work(candidate.values, result.prediction)
                if wrong:
                    raise NoValue(wrong)
                if limit := self._over_limit(candidate.values, result.prediction):
                    kind, detail = outcome.OVER_LIMIT, limit
                goals = self.space.objective.values(candidate.values, result.prediction)
            except NoValue as problem:
                if kind != outcome.OVER_LIMIT:
                    kind, detail = outcome.NO_STEP, str(problem)
        record = Record(-1, values, kind, detail, key, goals, result.prediction or {}, result.seconds, result.reused,
                        result.folder, candidate.baseline, result.checks)
        self.store.add(record, candidate.asked)
        self._learn(record)
        self.strategy.tell(record)
        self.view.tell(self, record)
        return record

    def _learn(self, record: Record) -> None:
        self.progress.kinds[record.kind] += 1
        self.pruner.learn(record)

    def _find_recording(self, record: Record) -> None:
        """The recording of an earlier session, if it is still there."""
        if record.ok and record.key and not record.reused:
            plan = plans.make(self.space, self.tree.complete(record.values), self._gpu_of)
            if plan.key() == record.key and not record.checks and self._recorded(record):
                self.recordings[plan.recording_key()] = record.folder

    def _recorded(self, record: Record) -> bool:
        """Whether the recording is on this machine: trials of other nodes leave theirs there."""
        return bool(record.folder) and (self.store.trial_folder(record.folder) / "run" / "run.toml").exists()

    def _over_limit(self, values: Mapping[str, Any], prediction: Mapping[str, Any]) -> str:
        limits, goals = self.space.limits, self.space.objective
        if self.space.serving and (broken := self.space.serving.broken(values, prediction)):
            return broken
        peak, capacity = peak_memory(prediction)
        if limits.memory_headroom and capacity and peak > capacity * (1 - limits.memory_headroom):
            return (f"{peak / 2**30:.1f} of {capacity / 2**30:.1f} GiB leave {100 * (1 - peak / capacity):.1f} % free; "
                    f"[limits] requires {100 * limits.memory_headroom:g} %")
        gpus = prediction.get("gpus") or prediction.get("world_size") or 1
        if limits.gpus is not None and gpus > limits.gpus:
            return f"{gpus} GPUs; at most {limits.gpus}"
        price = (prediction.get("cost") or {}).get("usd_per_gpu_hour")
        if limits.usd_per_hour is not None and price and price * gpus > limits.usd_per_hour:
            return f"${price * gpus:,.2f} an hour; at most ${limits.usd_per_hour:,.2f}"
        if limits.hours is not None and (hours := goals.value("time_to_tokens", values, prediction)) > limits.hours:
            return f"{hours:,.1f} hours to train; at most {limits.hours:,g}"
        if limits.usd is not None and (usd := goals.value("cost_to_tokens", values, prediction)) > limits.usd:
            return f"${usd:,.0f} to train; at most ${limits.usd:,.0f}"
        return ""

    def _check_failures(self, record: Record) -> None:
        if record.kind not in outcome.FAILURES:
            self.some_trial_worked = True
        if self.some_trial_worked:
            return
        self.failures.append(record)
        if len(self.failures) >= FIRST_FAILURES:
            first = self.failures[0]
            folder = self.store.trial_folder(first.key)
            raise EveryTrialFails(
                f"the first {len(self.failures)} trials failed, so the search stops. The first one "
                f"({self.space.label(first.values)}): "
                f"{first.kind}: {first.detail}\nIts output is in {folder / 'output.txt'}"
            )

    def _report(self) -> None:
        self.progress.running = self.engine.busy
        self.progress.own_seconds = time.process_time()
        self.view.update(self)


def duplicates(space: Space, records: list[Record]) -> list[str]:
    """Parameters that changed nothing on the GPUs wherever only they differed: does the script read them? (The step's
    time does not tell, since it differs from recording to recording where the host is slow.)"""
    ran = [r for r in records if r.ok and not r.reused]
    found = []
    for name in space.parameters:
        groups: dict[tuple, list[Record]] = {}
        for record in ran:
            rest = tuple((n, v) for n, v in record.values.items() if n != name)
            groups.setdefault(rest, []).append(record)
        pairs = [(a, b) for group in groups.values() for a, b in zip(group, group[1:])]
        if len(pairs) >= 2 and all(compare.same_work(a.prediction, b.prediction) for a, b in pairs):
            found.append(name)
    return found

